//! Plain single-threaded array loops of the engine's algorithms: what any system has to beat
//! before its threads count (McSherry, Isard and Murray, "Scalability! But at what COST?", 2015).
//!
//! Prints one JSON line. Times hold training only; reading and evaluation are apart.

#![forbid(unsafe_code)]

mod mf;
mod pagerank;

const USAGE: &str = "usage: naive pagerank EDGES ITERATIONS TOLERANCE
       naive mf TRAIN TEST DIMS ITERATIONS";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["pagerank", edges, iterations, tolerance] => {
            number(iterations).and_then(|n| pagerank::measure(edges, n, number(tolerance)?))
        }
        ["mf", train, test, dims, iterations] => {
            number(dims).and_then(|k| mf::measure(train, test, k, number(iterations)?))
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(line) => println!("{line}"),
        Err(message) => {
            eprintln!("naive: {message}");
            std::process::exit(1);
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a number, found {text:?}\n{USAGE}"))
}

/// Reads a file of little-endian 32-bit words, `width` of them a record.
fn read_words(path: &str, width: usize) -> Result<Vec<[u8; 4]>, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    let (words, rest) = bytes.as_chunks::<4>();
    if words.is_empty() || !rest.is_empty() || words.len() % width != 0 {
        return Err(format!("{path}: {} bytes is not a positive number of {width}-word records", bytes.len()));
    }
    Ok(words.to_vec())
}
