//! Edge lists as SNAP has them: `from to` a line, comment lines start with `#` or `%`; what is doubtful about them.
//!
//! Both ends are vertices of one square graph; only vertices with an edge exist. The first line is a header, and skipped, if it calls
//! its ends by names that are known ([`ENDS`](crate::columns::ENDS)), or neither is a number and all ends in the lines after it are
//! integers, as far as these are looked at, or if a column is named by it. Where ids are names it is an edge otherwise.

use crate::header::First;
use crate::records::Link;
use crate::text::{Input, number};

/// Says where the edges have numbers, in all of the first lines.
pub(crate) fn weights(input: &Input<'_>) -> Option<&'static str> {
    let mut text = input.head().ok()?;
    // Whatever is wrong with the first edges is reported when they are read.
    let first = First::of::<Link>(&mut text, input.roles())?;
    let ((ends, _), is_header) = first.columns::<Link>(input.roles()).ok()?;
    // A header has none.
    let mut edges = usize::from(is_header)..first.records.len();
    let is_weighted = |at| first.fields(at).get(2).is_some_and(|field| number(field).is_some());
    let are_weighted = !ends.contains(&2) && !edges.is_empty() && edges.all(is_weighted);
    are_weighted.then_some("numbers in its third column")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, parse_graph};

    #[test]
    fn a_header_is_no_edge() {
        let expected = parse_graph(b"1 2\n3 1\n", Format::Edges).unwrap();
        for text in [
            "source,target\n1,2\n3,1\n",
            "Source\tTarget\r\n1\t2\r\n3\t1\r\n",
            "# crawled\n\nfrom::to\n1::2\n# one more\n3::1\n",
            "\u{feff}FromNodeId ToNodeId\n1 2\n3 1\n",
            "src,dst,weight\n1,2,0.5\n3,1,2\n",
            "sep=;\r\nsource;target\r\n1;2\r\n3;1\r\n",
        ] {
            assert_eq!(parse_graph(text.as_bytes(), Format::Edges).unwrap(), expected, "{text:?}");
        }
        // Ends that are called by names that are known, and rows that pandas numbers.
        let expected = parse_graph(b"ann bob\nbob cid\n", Format::Edges).unwrap();
        for text in ["source,target\nann,bob\nbob,cid\n", ",Source,Target,since\n0,ann,bob,may\n1,bob,cid,june\n"] {
            assert_eq!(parse_graph(text.as_bytes(), Format::Edges).unwrap(), expected, "{text:?}");
        }
        // Names with numbers beside them.
        let expected = parse_graph(b"ann bob\nbob cid\n", Format::Edges).unwrap();
        for text in ["who,whom,n\nann,bob,7\nbob,cid,4\n", "who;whom;day;n\nann;bob;may;7.5\nbob;cid;june;-1\n"] {
            assert_eq!(parse_graph(text.as_bytes(), Format::Edges).unwrap(), expected, "{text:?}");
        }
        assert_eq!(
            parse_graph(b"caller,minutes,called\nann,7.42,bob\nbob,4.43,cid\n", Format::Edges)
                .unwrap()
                .edges
                .num_edges(),
            2
        );
    }

    #[test]
    fn the_first_edge_of_a_graph_of_names_is_kept() {
        for text in [
            "alice,bob\nbob,carol\n",
            "alice,bob\n",
            "alice,bob\n1,2\n2,carol\n",
            "alice,1\n1,2\n",
            "alice,bob,may\n1,2,june\ncarol,dan,5\n",
            "ann,bob,NA\nbob,cid,7\ncid,dan,4\n",
            "ann,bob,\nbob,cid,7\n",
        ] {
            let read = parse_graph(text.as_bytes(), Format::Edges).unwrap();
            assert_eq!(read.edges.num_edges(), text.lines().count(), "{text:?}");
        }
        // Numbers are ids, of a form that has to be corrected, but no header.
        assert!(parse_graph(b"-1,-2\n1,2\n", Format::Edges).is_err());
    }

    #[test]
    fn weights_are_numbers_beside_all_edges() {
        let weighted = |text: &str| weights(&Input::from_bytes(text.as_bytes())).is_some();
        for text in ["1 2 0.5\n2 3 1\n", "a,b,w\n1,2,3\n", "a,b,w\nc,d,1\n", "a\tb\t1e3\n"] {
            assert!(weighted(text), "{text:?}");
        }
        for text in ["1 2\n2 3\n", "1 2 x\n3 4 5\n", ",source,target\n0,1,2\n1,2,3\n", ""] {
            assert!(!weighted(text), "{text:?}");
        }
    }
}
