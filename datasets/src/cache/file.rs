//! An open cache, whatever its edges carry: windows of its sections, checked as they are mapped.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use megagrid_partition::Side;
use xxhash_rust::xxh3::xxh3_64;

use super::header::{Header, Section};
use super::names;
use super::pieces::Pieces;
use crate::map::{Map, Pages};
use crate::{Dictionary, Error, Labels};

/// A cache whose header and list of checksums are right.
#[derive(Debug)]
pub(crate) struct CacheFile {
    pub(super) path: PathBuf,
    pub(super) header: Header,
    file: File,
    pieces: Pieces,
}

impl CacheFile {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let header = Header::read(&file, path)?;
        let checksums = Map::new(&file, header.pieces_range(), Pages::Now).map_err(Error::io(path))?;
        if xxh3_64(checksums.bytes()) != header.pieces_checksum {
            let (path, part) = (path.to_path_buf(), "list of checksums");
            return Err(Error::CacheDamaged { path, part, problem: "wrong checksum" });
        }
        let pieces = Pieces::new(bytemuck::pod_collect_to_vec(checksums.bytes()));
        Ok(Self { path: path.to_path_buf(), header, file, pieces })
    }

    /// Maps a window of a section, given in bytes from the section's start, after checking the pieces it touches.
    pub(super) fn window(&self, section: Section, window: Range<u64>) -> Result<Window, Error> {
        let (start, bytes) = (self.header.range(section).start, self.header.section_bytes(section));
        let first_piece = self.header.first_piece(section);
        let wide = self.pieces.widen(first_piece, bytes, &window);
        let map = Map::new(&self.file, start + wide.start..start + wide.end, Pages::Now);
        let map = map.map_err(Error::io(&self.path))?;
        if !self.pieces.check(first_piece, &wide, map.bytes()) {
            return Err(self.damaged(section, "wrong checksum"));
        }
        Ok(Window { map, within: (window.start - wide.start) as usize..(window.end - wide.start) as usize })
    }

    /// Maps a whole section of which all pieces have been checked. Its pages are read when they are touched.
    pub(super) fn map_checked(&self, section: Section) -> Result<Map, Error> {
        Map::new(&self.file, self.header.range(section), Pages::Touched).map_err(Error::io(&self.path))
    }

    fn whole(&self, section: Section) -> Result<Window, Error> {
        self.window(section, 0..self.header.section_bytes(section))
    }

    pub(super) fn damaged(&self, section: Section, problem: &'static str) -> Error {
        Error::CacheDamaged { path: self.path.clone(), part: section.name(), problem }
    }

    pub(crate) fn names(&self, side: Side) -> Result<Dictionary, Error> {
        let (section, num_vertices) = match side {
            Side::Right if !self.header.square => (Section::RightNames, self.header.num_right),
            _ => (Section::LeftNames, self.header.num_left),
        };
        let names = names::decode(self.whole(section)?.bytes(), num_vertices);
        names.ok_or_else(|| self.damaged(section, "names that are not one per vertex"))
    }

    /// Reads the labels of the left vertices, if they have some.
    pub(crate) fn labels(&self) -> Result<Option<Labels>, Error> {
        let window = self.whole(Section::Labels)?;
        let labels: Vec<f32> = bytemuck::pod_collect_to_vec(window.bytes());
        let labels =
            Labels::of_numbers(&labels).map_err(|_| self.damaged(Section::Labels, "numbers that are no classes"))?;
        Ok((!labels.of.is_empty()).then_some(labels))
    }
}

pub(super) struct Window {
    map: Map,
    within: Range<usize>,
}

impl Window {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.map.bytes()[self.within.clone()]
    }
}
