//! Tables as people have them: whatever separates, quotes, names and orders their columns, the same edges are read.

use std::path::Path;
use std::sync::Arc;

use megagrid_datasets::output::{Column, write_table};
use megagrid_datasets::{
    Corpus, Dataset, Error, Format, Layout, Readers, Role, Roles, load_ratings_with, parse_graph, parse_ratings,
    read_corpus, read_graph, read_ratings,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use crate::together::together;

fn layout(format: Option<Format>, roles: &str) -> Layout {
    let roles = if roles.is_empty() { Roles::default() } else { roles.parse().unwrap() };
    Layout { format, roles, undirected: false }
}

/// Ids of all kinds, with what quotes are for.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..500_u32).prop_map(|id| id.to_string()),
        2 => "[a-z][a-z ]{0,6}[a-z]",
        1 => "[a-z][a-z\",;|\t\n\r#]{0,5}[a-z]",
        1 => "#?[a-z\u{e9}]{1,3}",
    ]
}

/// How a table is written.
#[derive(Clone, Debug)]
struct Dialect {
    separator: char,
    end: &'static str,
    /// Where user, item and rating are.
    order: [usize; 3],
    /// Columns beside those.
    more: usize,
    has_header: bool,
    by_name: bool,
    quotes_all: bool,
    has_mark: bool,
}

fn dialect() -> impl Strategy<Value = Dialect> {
    let orders = (3..6_usize).prop_flat_map(|width| {
        Just((0..width).collect::<Vec<_>>())
            .prop_shuffle()
            .prop_map(|order| ([order[0], order[1], order[2]], order.len() - 3))
    });
    let separators = prop_oneof![Just(','), Just(';'), Just('|'), Just('\t')];
    let ends = prop_oneof![Just("\n"), Just("\r\n")];
    (separators, ends, orders, any::<[bool; 4]>()).prop_map(|(separator, end, (order, more), flags)| {
        let [has_header, by_name, quotes_all, has_mark] = flags;
        Dialect { separator, end, order, more, has_header, by_name: by_name && has_header, quotes_all, has_mark }
    })
}

impl Dialect {
    fn field(&self, text: &str) -> String {
        // Whatever might separate is quoted: it would be a guess which of them does.
        let special = [',', ';', '|', '\t', '"', '\n', '\r'];
        if self.quotes_all || text.contains(special) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    }

    fn write(&self, records: &[(String, String, f32)]) -> String {
        let mut text = if self.has_mark { "\u{feff}".to_owned() } else { String::new() };
        let mut line = |values: [&str; 3], more: &str| {
            let mut fields = vec![self.field(more); 3 + self.more];
            for (at, value) in self.order.into_iter().zip(values) {
                fields[at] = self.field(value);
            }
            text += &fields.join(&self.separator.to_string());
            text += self.end;
        };
        if self.has_header {
            line(["who", "what (name)", "stars"], "other");
        }
        for (user, item, rating) in records {
            line([user, item, &rating.to_string()], "x");
        }
        text
    }

    fn roles(&self) -> String {
        if self.by_name {
            return "rating=Stars,item=what (name),user=who".to_owned();
        }
        let [user, item, rating] = self.order.map(|at| at + 1);
        format!("user={user},item={item},rating={rating}")
    }
}

/// Names of the ends and the rating of each edge, in order.
fn edges(read: &Dataset<f32>) -> Vec<(String, String, f32)> {
    let edges = &read.edges;
    let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
    let right_names = read.right_names();
    ends.map(|((&left, &right), &data)| (read.left_names.name(left).into(), right_names.name(right).into(), data))
        .collect()
}

fn written(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_dialect_reads_the_same_ratings(
        records in prop::collection::vec((id(), id(), (-8..8_i32).prop_map(|halves| halves as f32 / 2.0)), 1..40),
        dialect in dialect(),
        processes in 1..4_usize,
    ) {
        let text = dialect.write(&records);
        let file = written(&text);
        let layout = layout(None, &dialect.roles());
        let read = read_ratings(file.path(), &layout).unwrap();
        prop_assert_eq!(&edges(&read), &records, "{}", text);
        // Quotes may go over the cuts between parts.
        let part = |readers: Arc<dyn Readers>| load_ratings_with(file.path(), &layout, Some(&readers));
        for found in together(processes, |readers| part(readers).unwrap().into_dataset().unwrap()) {
            prop_assert_eq!(&found, &read, "{}", text);
        }
    }
}

#[test]
fn swapped_columns_are_the_same_graph() {
    let plain = parse_graph(b"1 2\n3 1\n7 2\n", Format::Edges).unwrap();
    for (text, roles) in [
        ("2,1\n1,3\n2,7\n", "from=2,to=1"),
        ("# to, from\nx;2;1\nx;1;3\nx;2;7\n", "from=3,to=2"),
        ("to|at|from\n2|x|1\n1|x|3\n2|x|7\n", "from=from,to=TO"),
        ("when to from\n1 2 1\n5 1 3\n4 2 7\n", "to=2,from=3"),
        ("8::2::1\n8::1::3\n8::2::7\n", "to=2,from=3"),
    ] {
        assert_eq!(read_graph(written(text).path(), layout(None, roles)).unwrap(), plain, "{text}");
    }
    // Its header tells without being asked.
    let told = written("target,source\n2,1\n1,3\n2,7\n");
    assert_eq!(read_graph(told.path(), None).unwrap(), plain);
    // A header by which a column is named is one, although ids are names.
    let named = written("source,target\na,b\n");
    let read = read_graph(named.path(), layout(None, "from=source,to=target")).unwrap();
    assert_eq!(read.edges.num_edges(), 1);
}

#[test]
fn a_header_with_known_names_tells_the_columns() {
    let plain = parse_ratings(b"1,x,2\n2,y,4\n", Format::Ratings).unwrap();
    for text in [
        "item,user,rating\nx,1,2\ny,2,4\n",
        "\"Rating\";\"time\";\"item_id\";\"user_id\"\n2;9;x;1\n4;9;y;2\n",
        "user,item,stars\n1,x,2\n2,y,4\n",
    ] {
        assert_eq!(parse_ratings(text.as_bytes(), Format::Ratings).unwrap(), plain, "{text}");
        assert_eq!(read_ratings(written(text).path(), None).unwrap(), plain, "{text}");
    }
}

#[test]
fn a_header_with_known_names_tells_the_kind_of_data() {
    let role = |text: &str, roles: &str| layout(None, roles).role(written(text).path()).unwrap();
    for (text, roles, expected) in [
        ("document,word,count\na,b,2\n", "", Some(Role::Document)),
        ("#user,item\n1,2\n3,4\n", "", Some(Role::User)),
        ("time;item_id;user_id\n1;2;3\n", "", Some(Role::User)),
        ("source,target\n1,2\n3,4\n", "", Some(Role::From)),
        ("source,target,weight\n1,2,3\n3,4,5\n", "", None),
        ("source,target\na,b\nb,c\n", "", Some(Role::From)),
        ("who,what,stars\n1,2,3\n", "", None),
        ("1,2\n3,4\n", "", None),
        ("user,item\n1,2\n", "from=1,to=2", Some(Role::From)),
        ("{\"word\": 1, \"document\": 2}\n", "", Some(Role::Document)),
    ] {
        assert_eq!(role(text, roles), expected, "{text}");
    }
    let stated = layout(Some(Format::Ratings), "").role(written("document,word,count\na,b,2\n").path());
    assert_eq!(stated.unwrap(), None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    write_table(&path, &[("dst", Column::U32(vec![1].into())), ("src", Column::U32(vec![2].into()))]).unwrap();
    assert_eq!(layout(None, "").role(&path).unwrap(), Some(Role::From));
}

#[test]
fn a_record_is_not_wider_than_its_header() {
    let read = |text: &str, roles: &str| {
        let read = read_ratings(written(text).path(), layout(Some(Format::Ratings), roles));
        read.map(|read| read.edges.num_edges()).map_err(|error| error.to_string())
    };
    let quotes = "separated by commas, as in the header; a field that has commas in it needs quotes";
    for (text, roles, expected) in [
        (
            "user,item,rating\nann,tea,4\nann,Oceans,11,4\n",
            "",
            ":3: rating: found \"ann,Oceans,11,4\", expected 3 fields",
        ),
        ("user,item,rating\n1,2,4\n1,2,4,5\n1,2,4\n", "", ":3: rating: found \"1,2,4,5\", expected 3 fields"),
        ("user,item,rating,time\n1,2,4,9\n1,2,4,9,,5\n", "", ":3: rating: found \"1,2,4,9,,5\", expected 4 fields"),
        (
            "user,item,rating,time,x\n1,2,4,9,\n1,2,4,9,5,6\n",
            "",
            ":3: rating: found \"1,2,4,9,5,6\", expected 5 fields",
        ),
        ("user,item,rating\n\"ann\",tea,4,5\n", "", ":2: rating: found \"\\\"ann\\\",tea,4,5\", expected 3 fields"),
        (
            "a,b,c,d\n1,2,3,x\n1,2,3,x,y\n",
            "user=c,item=a,rating=2",
            ":3: rating: found \"1,2,3,x,y\", expected 4 fields",
        ),
    ] {
        let said = read(text, roles).unwrap_err();
        assert!(said.contains(expected) && said.ends_with(quotes), "{text}: {said}");
    }
    for text in [
        "user,item,rating\n1,2,4,\n1,2,4, ,,\r\n\"1\",3,4,,\n",
        "user,item,rating,time\n1,2,4\n1,2,4,7\r\n1,2,4,7,\n",
        "user,item,rating,time,x\n1,2,4\n1,2,4,7\n1,2,4,7,\"a, b\"\n",
        "user item rating\n1 2 4\n1 2 4 5\n1 2 4 5 6\n",
        "1,2,4\n1,2,4,5\n1,2,4,5,6\n",
    ] {
        assert_eq!(read(text, ""), Ok(3), "{text}");
    }
}

#[test]
fn words_and_their_counts_are_a_corpus() {
    let read = |text: &str, roles: &str| read_corpus(written(text).path(), layout(None, roles)).unwrap();
    let names = |corpus: &Corpus| corpus.data.right_names().iter().map(|name| name.into_owned()).collect::<Vec<_>>();
    let plain = read_corpus(written("d1,cat,2\nd1,dog,1\nd2,cat,3\n").path(), None).unwrap();
    assert_eq!((plain.num_tokens, names(&plain)), (6, vec!["cat".to_owned(), "dog".to_owned()]));
    let swapped = "count,word,document\n2,cat,d1\n1,dog,d1\n3,cat,d2\n";
    assert_eq!(read(swapped, "document=document"), plain);
    assert_eq!(read_corpus(written(swapped).path(), Some(Format::Counts)).unwrap(), plain);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let text = |names: &[&str]| Column::Strings(names.iter().map(|name| name.to_string()).collect());
    let columns = [
        ("n", Column::I64(vec![2, 1, 3].into())),
        ("w", text(&["cat", "dog", "cat"])),
        ("d", text(&["d1", "d1", "d2"])),
    ];
    write_table(&path, &columns).unwrap();
    assert_eq!(read_corpus(&path, layout(None, "document=d,word=w,count=n")).unwrap(), plain);
    let fewer = read_corpus(written("d1,cat,0\n").path(), None).unwrap_err().to_string();
    assert!(fewer.contains(":1: count: found \"0\", expected an integer from 1"), "{fewer}");
}

#[test]
fn parquet_columns_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let numbers = |of: [i64; 2]| Column::I64(of.to_vec().into());
    write_table(&path, &[("stars", numbers([4, 5])), ("what", numbers([7, 8])), ("who", numbers([1, 2]))]).unwrap();
    let plain = parse_ratings(b"1,7,4\n2,8,5\n", Format::Ratings).unwrap();
    for roles in ["user=who,item=what,rating=stars", "user=3,item=2,rating=1"] {
        assert_eq!(read_ratings(&path, layout(None, roles)).unwrap(), plain);
    }
    let error = read_ratings(&path, layout(None, "user=whom")).unwrap_err().to_string();
    assert!(error.contains("no column whom for user; its columns are 1 stars, 2 what, 3 who"), "{error}");
}

/// Writes a column of optional texts in a dictionary, a column of others and one of numbers.
fn write_optional(path: &Path, users: &[Option<&str>]) {
    let schema = "message m { optional binary who (UTF8); required binary what (UTF8); required double stars; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_dictionary_enabled(true).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let present: Vec<ByteArray> = users.iter().flatten().map(|&user| ByteArray::from(user)).collect();
    let levels: Vec<i16> = users.iter().map(|user| i16::from(user.is_some())).collect();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&present, Some(&levels), None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&vec![ByteArray::from("tea"); users.len()], None, None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&vec![4.0; users.len()], None, None).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn texts_in_a_dictionary_are_read_and_a_null_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let users: Vec<String> = (0..500).map(|row| format!("user {}", row % 3)).collect();
    let mut optional: Vec<Option<&str>> = users.iter().map(|user| Some(user.as_str())).collect();
    write_optional(&path, &optional);
    let text: String = users.iter().map(|user| format!("{user},tea,4\n")).collect();
    let roles = layout(None, "user=who,item=what,rating=stars");
    assert_eq!(read_ratings(&path, &roles).unwrap(), parse_ratings(text.as_bytes(), Format::Ratings).unwrap());
    optional[311] = None;
    write_optional(&path, &optional);
    let said = read_ratings(&path, &roles).unwrap_err().to_string();
    assert!(said.contains("a.parquet:312: row: found \"null\", expected a value in column who"), "{said}");
}

#[test]
fn what_is_wrong_with_a_table_is_told() {
    let error = |text: &str, roles: &str| {
        let layout = if roles.is_empty() { Some(Format::Ratings).into() } else { layout(None, roles) };
        read_ratings(written(text).path(), &layout).unwrap_err().to_string()
    };
    for (text, roles, expected) in [
        ("a,b,c\n1,2,3\n", "user=d", "there is no column d for user; its columns are 1 a, 2 b, 3 c"),
        ("1,2,3\n4,5,6\n", "rating=4", "there is no column 4 for rating; it has 3 columns without names"),
        ("1,2,3\n4,5,6\n", "user=2", "column 2 would be both user and item; name both in --columns"),
        ("1,2,3\n4,5,6\n", "from=2", "--columns says which is from, but what is read has user, item, rating"),
        (
            "1,2,3\n4,5\n",
            "user=3,rating=1",
            ":2: rating: found \"4,5\", expected a user in column 3, an item in column 2 and a number in column 1 separated by commas",
        ),
        ("1,2,3\n\"4\n4\",5,6\n7,8,x\n", "", ":4: rating: found \"x\""),
        ("1,2,3\n4,\"5,6\n7,8,9\n", "", ":2: quoted field: found \"\\\"5,6\\n7,8,9\", expected a quote that closes it"),
        ("1,2,3\n4,\"5\"6,7\n", "", ":2: quoted field: found \"\\\"5\\\"6,7\", expected the end of the field"),
        ("1,2,3\n\"\",5,6\n", "", ":2: user: found \"\""),
    ] {
        let said = error(text, roles);
        assert!(said.contains(expected), "{said}");
    }
    // Of a header that names both ends the number is neither of them, and no end is a time.
    for (text, expected) in [
        ("id,user_id,item_id,stars\n99,501,20,5\n98,502,30,4\n", "no column is called rating"),
        ("review,user,item\n5,501,20\n4,502,30\n", "no column is called rating"),
        ("timestamp,who,film,rating\n881,5,6,3\n882,5,7,4\n", "column 1 would hold ids, and is called a time"),
        (",kunde,artikel,note\n0,196,242,3\n1,186,302,3\n", "column 1 would hold ids, and has no name"),
        ("user item rating\n1 501 20 3\n2 502 30 4\n", "have one more, which numbers them"),
    ] {
        let said = error(text, "");
        assert!(said.contains(expected), "{text}: {said}");
    }
    let read =
        |text: &str, roles: &str| read_ratings(written(text).path(), layout(Some(Format::Ratings), roles)).unwrap();
    let expected = read("501,20,5\n502,30,4\n", "");
    for (text, roles) in [
        ("id,user_id,item_id,stars\n99,501,20,5\n98,502,30,4\n", "rating=stars"),
        ("timestamp,userId,movieId,rating\n881,501,20,5\n882,502,30,4\n", ""),
        ("# user item rating timestamp\n501 20 5 881\n502 30 4 882\n", ""),
        ("#user,item,rating\n501,20,5\n502,30,4\n", ""),
        ("user,item,rating\n501,20,5,\n502,30,4,\n", ""),
        ("timestamp,film,rating\n501,20,5\n502,30,4\n", "user=timestamp,item=film"),
    ] {
        assert_eq!(read(text, roles), expected, "{text}");
    }
    // What a comment quotes by half would take lines along.
    let links = |text: &str| {
        read_graph(written(text).path(), layout(Some(Format::Edges), "")).map(|read| read.edges.num_edges())
    };
    assert_eq!(links("1,2\n# a,\"b\"\n2,3\n").unwrap(), 2);
    let said = links("1,2\n# a,\"b\n2,3\n3,1\n").unwrap_err().to_string();
    assert!(said.contains(":2: comment: found") && said.contains("to be closed in its line"), "{said}");
    let file = written("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n");
    let said = read_ratings(file.path(), layout(None, "user=1")).unwrap_err();
    assert!(matches!(said, Error::Invalid { .. }) && said.to_string().contains("the format is mtx"), "{said}");
}

/// The other end is where its own name is, not where it is in the order.
#[test]
fn one_end_is_named_and_the_other_one_is_known() {
    let expected = parse_ratings(b"ann i1 5\nbob i2 1\n", Format::Ratings).unwrap();
    let csv = "who,genre,item,rating\nann,jazz,i1,5\nbob,rock,i2,1\n";
    let json = "{\"who\":\"ann\",\"item\":\"i1\",\"rating\":5}\n{\"who\":\"bob\",\"item\":\"i2\",\"rating\":1}\n";
    let swapped = "what,rating,user\ni1,5,ann\ni2,1,bob\n";
    for (text, format, roles) in [
        (csv, Format::Ratings, "user=who"),
        (json, Format::JsonLines, "user=who"),
        (swapped, Format::Ratings, "item=what"),
    ] {
        let read = read_ratings(written(text).path(), layout(Some(format), roles)).unwrap();
        assert_eq!(read, expected, "{text}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    let texts = |names: [&str; 2]| Column::Strings(names.map(str::to_owned).to_vec().into());
    let columns = [
        ("who", texts(["ann", "bob"])),
        ("genre", texts(["jazz", "rock"])),
        ("item", texts(["i1", "i2"])),
        ("rating", Column::F32(vec![5.0, 1.0].into())),
    ];
    write_table(&path, &columns).unwrap();
    assert_eq!(read_ratings(&path, layout(None, "user=who")).unwrap(), expected);
    let links = "origin,airline,target\nA,KL,B\nB,SK,C\n";
    let read = read_graph(written(links).path(), layout(Some(Format::Edges), "from=origin")).unwrap();
    assert_eq!(read, parse_graph(b"A B\nB C\n", Format::Edges).unwrap());
}
