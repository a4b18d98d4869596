//! The first bytes of a cache: what it is, how large its parts are and where they lie.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::EdgeType;
use super::pieces::num_pieces;
use crate::Error;

/// The version of the format that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// A byte that is no text, the name, and line ends that a transfer as text would change.
const MAGIC: [u8; 8] = *b"\x8fMGRD\r\n\x1a";
pub(super) const HEADER_BYTES: usize = 512;
/// Sections start at multiples of this.
const ALIGNMENT: u64 = 64;
const SQUARE: u32 = 1;

/// A part of a cache, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    LeftOffsets,
    RightOffsets,
    RightFarEnds,
    RightData,
    LeftFarEnds,
    LeftData,
    LeftNames,
    RightNames,
    Labels,
}

impl Section {
    pub(super) const ALL: [Self; 9] = [
        Self::LeftOffsets,
        Self::RightOffsets,
        Self::RightFarEnds,
        Self::RightData,
        Self::LeftFarEnds,
        Self::LeftData,
        Self::LeftNames,
        Self::RightNames,
        Self::Labels,
    ];

    /// Returns what messages call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LeftOffsets => "left offsets",
            Self::RightOffsets => "right offsets",
            Self::RightFarEnds => "far ends by right vertex",
            Self::RightData => "edge data by right vertex",
            Self::LeftFarEnds => "far ends by left vertex",
            Self::LeftData => "edge data by left vertex",
            Self::LeftNames => "left names",
            Self::RightNames => "right names",
            Self::Labels => "labels",
        }
    }
}

/// What a cache says about itself, without its edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The version of its format.
    pub version: u32,
    /// The data of its edges.
    pub edge_type: EdgeType,
    /// Whether both sides are the same vertices.
    pub square: bool,
    /// Vertices of the left side.
    pub num_left: u64,
    /// Vertices of the right side.
    pub num_right: u64,
    /// Edges.
    pub num_edges: u64,
    /// Whether the left vertices have labels.
    pub has_labels: bool,
    /// Length of the file.
    pub file_bytes: u64,
}

/// Reads what a cache says about itself.
///
/// # Errors
/// Where the file is not a cache, or is one of another version, truncated or damaged.
pub fn info(path: impl AsRef<Path>) -> Result<Info, Error> {
    let path = path.as_ref();
    let header = Header::read(&File::open(path).map_err(Error::io(path))?, path)?;
    Ok(Info {
        version: FORMAT_VERSION,
        edge_type: header.edge_type,
        square: header.square,
        num_left: header.num_left,
        num_right: header.num_right,
        num_edges: header.num_edges,
        has_labels: header.section_bytes(Section::Labels) > 0,
        file_bytes: header.file_bytes(),
    })
}

/// The header. Where the sections lie follows from their lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) edge_type: EdgeType,
    pub(super) square: bool,
    pub(super) num_left: u64,
    pub(super) num_right: u64,
    pub(super) num_edges: u64,
    lengths: [u64; Section::ALL.len()],
    pub(super) pieces_checksum: u64,
}

impl Header {
    pub(super) fn new(
        edge_type: EdgeType,
        square: bool,
        [num_left, num_right, num_edges]: [u64; 3],
        names_bytes: [u64; 2],
        has_labels: bool,
    ) -> Self {
        let mut header =
            Self { edge_type, square, num_left, num_right, num_edges, lengths: [0; _], pieces_checksum: 0 };
        header.lengths[Section::LeftNames as usize] = names_bytes[0];
        header.lengths[Section::RightNames as usize] = names_bytes[1];
        header.lengths[Section::Labels as usize] = if has_labels { 4 * num_left } else { 0 };
        for section in Section::ALL {
            if let Some(bytes) = header.implied_bytes(section) {
                header.lengths[section as usize] = bytes;
            }
        }
        header
    }

    /// Returns the length that a section has to have by the counts; `None` where it is free or overflows.
    fn implied_bytes(&self, section: Section) -> Option<u64> {
        let per_edge = |bytes: u64| self.num_edges.checked_mul(bytes);
        match section {
            Section::LeftOffsets => self.num_left.checked_add(1)?.checked_mul(8),
            Section::RightOffsets => self.num_right.checked_add(1)?.checked_mul(8),
            Section::RightFarEnds | Section::LeftFarEnds => per_edge(4),
            Section::RightData | Section::LeftData => per_edge(self.edge_type.bytes()),
            Section::LeftNames | Section::RightNames | Section::Labels => None,
        }
    }

    /// Tells whether the lengths of the sections fit the counts, and the file does not exceed what can be addressed.
    fn is_consistent(&self) -> bool {
        let fits = |section: Section| {
            let bytes = self.section_bytes(section);
            match section {
                Section::LeftNames => true,
                Section::RightNames => (bytes == 0) == self.square,
                Section::Labels => bytes == 0 || Some(bytes) == self.num_left.checked_mul(4),
                _ => Some(bytes) == self.implied_bytes(section),
            }
        };
        let total = self.lengths.iter().try_fold(0u64, |total, &bytes| total.checked_add(bytes));
        let ids = u64::from(u32::MAX);
        total.is_some_and(|total| total < u64::MAX / 4)
            && Section::ALL.into_iter().all(fits)
            && self.num_left.max(self.num_right) <= ids
            && (!self.square || self.num_left == self.num_right)
    }

    pub(super) fn section_bytes(&self, section: Section) -> u64 {
        self.lengths[section as usize]
    }

    /// Returns where a section lies in the file.
    pub(super) fn range(&self, section: Section) -> Range<u64> {
        let before = &self.lengths[..section as usize];
        let start = before.iter().fold(HEADER_BYTES as u64, |start, bytes| start + bytes.next_multiple_of(ALIGNMENT));
        start..start + self.section_bytes(section)
    }

    /// Returns the position of a section's first checksum among those of all pieces.
    pub(super) fn first_piece(&self, section: Section) -> usize {
        self.lengths[..section as usize].iter().map(|&bytes| num_pieces(bytes)).sum()
    }

    /// Returns where the checksums of the pieces lie in the file: at its end.
    pub(super) fn pieces_range(&self) -> Range<u64> {
        let start = self.range(Section::Labels).end.next_multiple_of(ALIGNMENT);
        let num_pieces: usize = self.lengths.iter().map(|&bytes| num_pieces(bytes)).sum();
        start..start + 8 * num_pieces as u64
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.pieces_range().end
    }

    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let flags = if self.square { SQUARE } else { 0 };
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        for number in [FORMAT_VERSION, self.edge_type.tag(), flags, Section::ALL.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        let counts = [self.num_left, self.num_right, self.num_edges, self.pieces_checksum];
        for number in counts.iter().chain(&self.lengths) {
            bytes.extend(number.to_le_bytes());
        }
        bytes.resize(HEADER_BYTES - 8, 0);
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&bytes);
        header
    }

    /// Reads the header and compares the length of the file with it.
    pub(super) fn read(file: &File, path: &Path) -> Result<Self, Error> {
        let found = file.metadata().map_err(Error::io(path))?.len();
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        file.take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(Error::io(path))?;
        let header = Self::decode(&bytes, path)?;
        let expected = header.file_bytes();
        if found == expected {
            Ok(header)
        } else {
            Err(Error::CacheLength { path: path.to_path_buf(), found, expected })
        }
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let path_buf = || path.to_path_buf();
        if !bytes.starts_with(&MAGIC) {
            return Err(Error::NotACache(path_buf()));
        }
        let mut fields = Fields(&bytes[MAGIC.len()..]);
        // The version comes first and is looked at first: all else may differ in another one.
        let version = fields.u32();
        if bytes.len() >= MAGIC.len() + 4 && version != FORMAT_VERSION {
            return Err(Error::CacheVersion { path: path_buf(), found: version, expected: FORMAT_VERSION });
        }
        if bytes.len() < HEADER_BYTES {
            let (found, expected) = (bytes.len() as u64, HEADER_BYTES as u64);
            return Err(Error::CacheLength { path: path_buf(), found, expected });
        }
        let damaged = |problem| Error::CacheDamaged { path: path_buf(), part: "header", problem };
        let (covered, checksum) = bytes.split_at(HEADER_BYTES - 8);
        if Fields(checksum).u64() != xxh3_64(covered) {
            return Err(damaged("wrong checksum"));
        }
        let (tag, flags, num_sections) = (fields.u32(), fields.u32(), fields.u32());
        let edge_type = EdgeType::from_tag(tag).ok_or_else(|| damaged("unknown edge type"))?;
        let [num_left, num_right, num_edges, pieces_checksum] = std::array::from_fn(|_| fields.u64());
        let lengths = std::array::from_fn(|_| fields.u64());
        let square = flags & SQUARE != 0;
        let header = Self { edge_type, square, num_left, num_right, num_edges, lengths, pieces_checksum };
        if num_sections as usize != Section::ALL.len() || flags & !SQUARE != 0 || !header.is_consistent() {
            return Err(damaged("contradicting sizes"));
        }
        Ok(header)
    }
}

/// Numbers one after the other; 0 after the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *field
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.next())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header::new(EdgeType::Float, false, [3, 5, 1_000_000], [33, 48], true)
    }

    #[test]
    fn sections_are_aligned_and_follow_each_other() {
        let header = header();
        let mut end = HEADER_BYTES as u64;
        for section in Section::ALL {
            let range = header.range(section);
            assert_eq!(range.start % ALIGNMENT, 0);
            assert!((end..end + ALIGNMENT).contains(&range.start));
            end = range.end;
        }
        // Far ends and data are 4 MB each: four pieces; the rest are five sections of one piece.
        assert_eq!(header.pieces_range().end - header.pieces_range().start, 8 * (4 * 4 + 5));
    }

    #[test]
    fn headers_survive_and_any_changed_byte_is_seen() {
        let header = header();
        let bytes = header.encode();
        let path = Path::new("x.mgrid");
        assert_eq!(Header::decode(&bytes, path).unwrap(), header);
        for at in 0..HEADER_BYTES {
            let mut changed = bytes;
            changed[at] ^= 0x10;
            assert!(Header::decode(&changed, path).is_err(), "byte {at}");
            assert!(Header::decode(&bytes[..at], path).is_err(), "cut to {at}");
        }
    }

    #[test]
    fn well_summed_nonsense_is_refused() {
        let path = Path::new("x.mgrid");
        let changes: [fn(&mut Header); 6] = [
            |header| header.num_edges = u64::MAX,
            |header| header.num_left = u64::MAX,
            |header| header.square = true,
            |header| header.lengths[Section::LeftNames as usize] = u64::MAX - 5,
            |header| header.lengths[Section::Labels as usize] = 4,
            |header| header.lengths[Section::LeftData as usize] = 4,
        ];
        for change in changes {
            let mut header = header();
            change(&mut header);
            let error = Header::decode(&header.encode(), path).unwrap_err();
            assert!(error.to_string().starts_with("x.mgrid: contradicting sizes in the header"), "{error}");
        }
    }
}
