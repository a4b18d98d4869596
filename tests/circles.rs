//! No circle between the modules of a crate: what uses another module's items is above it, and nothing below uses it back.
//!
//! A module is a file here. It uses another where it names an item that the other one defines: in a `use`, or by a path. A
//! name that a module only hands on belongs to where it is defined, so a `mod.rs` that declares and hands on is no part of a
//! circle; one whose children use what it defines, while it uses them, is. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, UseTree, Visibility};

/// Crates whose folders are floors: no circle between those either, each taken as a whole.
const FLOORS: [&str; 1] = ["engine"];

#[test]
fn no_module_uses_what_uses_it() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates are folders of the workspace");
    let mut found = String::new();
    let mut crates = 0;
    for root in roots(workspace) {
        crates += 1;
        let member = root.strip_prefix(workspace).expect("a file of the workspace").iter().next().expect("a crate");
        let uses = Crate::read(&root).uses();
        describe(&circles(&uses), &uses, workspace, &mut found);
        if FLOORS.iter().any(|floors| member == *floors) {
            let source = root.parent().expect("a root is in a folder");
            let floors = by_floor(&uses, source);
            describe(&circles(&floors), &floors, workspace, &mut found);
        }
    }
    assert!(crates > 10, "the crates of the workspace are found, not {crates}");
    assert!(found.is_empty(), "modules that use each other:\n{found}");
}

/// The names that a file takes from another, by the two of them.
type Uses = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

/// Lists the roots of crates below a folder.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir()
            && !path.is_symlink()
            && !name.starts_with('.')
            && !["target", "tests", "shared", "peers", "fuzz"].contains(&name)
        {
            found.extend(roots(&path));
        } else if ["lib.rs", "main.rs"].contains(&name) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Joins the files of each folder beside a crate's root.
fn by_floor(uses: &Uses, source: &Path) -> Uses {
    let floor = |file: &Path| {
        let inside = file.strip_prefix(source).expect("a file of the crate");
        source.join(inside.iter().next().expect("a name")).with_extension("")
    };
    let mut floors = Uses::new();
    for ((from, to), names) in uses {
        let (from, to) = (floor(from), floor(to));
        if from != to {
            floors.entry((from, to)).or_default().extend(names.iter().cloned());
        }
    }
    floors
}

/// Returns groups of files each of which reaches all others of its group.
fn circles(uses: &Uses) -> Vec<BTreeSet<PathBuf>> {
    let reached = |from: &PathBuf| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            for (_, to) in uses.keys().filter(|(from, _)| from == file) {
                if seen.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        seen
    };
    let files: BTreeSet<&PathBuf> = uses.keys().map(|(from, _)| from).collect();
    let reached: BTreeMap<&PathBuf, BTreeSet<PathBuf>> = files.iter().map(|file| (*file, reached(file))).collect();
    let mut circles = Vec::new();
    let mut done = BTreeSet::new();
    for (file, there) in &reached {
        let back = |other: &&PathBuf| reached.get(*other).is_some_and(|back| back.contains(*file));
        let circle: BTreeSet<PathBuf> = there.iter().filter(back).cloned().collect();
        if !circle.is_empty() && done.insert(circle.clone()) {
            circles.push(circle);
        }
    }
    circles
}

/// Writes what ties each circle.
fn describe(circles: &[BTreeSet<PathBuf>], uses: &Uses, workspace: &Path, out: &mut String) {
    let short = |path: &Path| path.strip_prefix(workspace).unwrap_or(path).display().to_string();
    for circle in circles {
        writeln!(out, "{} modules:", circle.len()).expect("written");
        for ((from, to), names) in uses.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to)) {
            let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            writeln!(out, "  {} uses {names} of {}", short(from), short(to)).expect("written");
        }
    }
}

/// A module's place: the names from the crate's root to it.
type Place = Vec<String>;

/// The modules of a crate.
struct Crate(BTreeMap<Place, Module>);

/// A module: a file, or a part of one.
struct Module {
    file: PathBuf,
    /// What it defines.
    items: BTreeSet<String>,
    /// What its `use`s bring in.
    imports: Vec<Import>,
    /// The paths in it, outside of `use`s; single names among them.
    paths: BTreeSet<Vec<String>>,
}

/// A name that a `use` brings in; `*`: all names of a module.
struct Import {
    name: String,
    path: Vec<String>,
    /// Whether it is handed on.
    is_public: bool,
}

impl Crate {
    fn read(root: &Path) -> Self {
        let mut modules = BTreeMap::new();
        let folder = root.parent().expect("a root is in a folder");
        read_file(root, folder, Vec::new(), &mut modules);
        Self(modules)
    }

    /// Finds what each file takes from others.
    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (place, module) in &self.0 {
            let heads: BTreeSet<&String> = module.paths.iter().filter_map(|path| path.first()).collect();
            let mut wanted: Vec<Vec<String>> = module.paths.iter().filter(|path| path.len() > 1).cloned().collect();
            for import in &module.imports {
                if import.name == "*" {
                    let all = |name: &&String| [&import.path[..], &[(*name).clone()]].concat();
                    wanted.extend(heads.iter().map(all));
                } else if !import.is_public || heads.contains(&import.name) {
                    wanted.push(import.path.clone());
                }
            }
            for path in wanted {
                if let Some((there, name)) = self.resolve(place, &path, 0)
                    && let Some(name) = name
                    && self.0[&there].file != module.file
                {
                    let tie = (module.file.clone(), self.0[&there].file.clone());
                    uses.entry(tie).or_default().insert(name);
                }
            }
        }
        uses
    }

    /// Follows a path as a module sees it: to a module, or to what a module defines.
    fn resolve(&self, from: &Place, path: &[String], depth: usize) -> Option<(Place, Option<String>)> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Some(Place::new()),
            "self" => Some(from.clone()),
            "super" => Some(from[..from.len().checked_sub(1)?].to_vec()),
            _ => None,
        };
        match start {
            Some(place) => self.follow(place, rest, depth),
            None => self.follow(from.clone(), path, depth),
        }
    }

    fn follow(&self, mut place: Place, path: &[String], depth: usize) -> Option<(Place, Option<String>)> {
        // Names that are handed on in a circle lead nowhere.
        if depth > 16 {
            return None;
        }
        for (at, name) in path.iter().enumerate() {
            let module = self.0.get(&place)?;
            let child = [&place[..], std::slice::from_ref(name)].concat();
            if name == "super" {
                place.pop()?;
            } else if self.0.contains_key(&child) {
                place = child;
            } else if module.items.contains(name) {
                return Some((place, Some(name.clone())));
            } else if let Some(import) = module.imports.iter().find(|import| import.name == *name) {
                let path = [&import.path[..], &path[at + 1..]].concat();
                return if import.path.first() == Some(name) { None } else { self.resolve(&place, &path, depth + 1) };
            } else {
                // Names of another crate are not looked for in this one.
                let is_here = |first: &String| {
                    ["crate", "self", "super"].contains(&first.as_str())
                        || module.imports.iter().any(|import| import.name == *first)
                        || self.0.contains_key(&[&place[..], std::slice::from_ref(first)].concat())
                };
                let is_glob = |import: &&Import| import.name == "*" && import.path.first().is_some_and(is_here);
                let globs = module.imports.iter().filter(is_glob);
                return globs.into_iter().find_map(|glob| {
                    let found = self.resolve(&place, &[&glob.path[..], &path[at..]].concat(), depth + 1)?;
                    found.1.is_some().then_some(found)
                });
            }
        }
        Some((place, None))
    }
}

/// Reads the module of a file, whose children are in `folder`.
fn read_file(file: &Path, folder: &Path, place: Place, modules: &mut BTreeMap<Place, Module>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    read_items(parsed.items, file, folder, place, modules);
}

fn read_items(items: Vec<Item>, file: &Path, folder: &Path, place: Place, modules: &mut BTreeMap<Place, Module>) {
    let mut module =
        Module { file: file.to_owned(), items: BTreeSet::new(), imports: Vec::new(), paths: BTreeSet::new() };
    for item in items {
        match item {
            Item::Mod(inner) if is_test(&inner.attrs) => {}
            Item::Mod(inner) => {
                let name = inner.ident.to_string();
                let (place, below) = ([&place[..], std::slice::from_ref(&name)].concat(), folder.join(&name));
                match inner.content {
                    Some((_, items)) => read_items(items, file, &below, place, modules),
                    None => {
                        let beside = folder.join(format!("{name}.rs"));
                        let file = if beside.exists() { beside } else { below.join("mod.rs") };
                        // A module of another platform's, or of a feature's, may have another path.
                        if file.exists() {
                            read_file(&file, &below, place, modules);
                        }
                    }
                }
            }
            Item::Impl(mut inner) => {
                inner.items.retain(|item| match item {
                    ImplItem::Fn(item) => !is_test(&item.attrs),
                    ImplItem::Const(item) => !is_test(&item.attrs),
                    _ => true,
                });
                module.scan(inner.to_token_stream());
            }
            item if is_test(attributes(&item)) => {}
            item => {
                module.items.extend(name(&item));
                module.scan(item.to_token_stream());
            }
        }
    }
    modules.insert(place, module);
}

impl Module {
    /// Takes down the `use`s and paths of some code.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(word) if word == "use" && !matches!(tokens.get(at + 1), Some(TokenTree::Punct(_))) => {
                    let len = tokens[at..].iter().position(|token| is_punct(token, ';')).unwrap_or(0) + 1;
                    self.import(&tokens[..at], tokens[at..at + len].iter().cloned().collect());
                    at += len;
                }
                TokenTree::Ident(_)
                    if at > 0 && (is_punct(&tokens[at - 1], '.') || is_punct(&tokens[at - 1], '\'')) =>
                {
                    at += 1
                }
                TokenTree::Ident(_) => at += self.path(&tokens[at..]),
                TokenTree::Group(group) => {
                    self.scan(group.stream());
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Takes a path down, and returns its length in tokens.
    fn path(&mut self, tokens: &[TokenTree]) -> usize {
        let (mut path, mut len) = (Vec::new(), 0);
        while let Some(TokenTree::Ident(word)) = tokens.get(len) {
            path.push(word.to_string());
            len += 1;
            if !matches!(tokens.get(len..len + 2), Some([first, second]) if is_punct(first, ':') && is_punct(second, ':'))
            {
                break;
            }
            len += 2;
        }
        self.paths.insert(path);
        len
    }

    fn import(&mut self, before: &[TokenTree], tokens: TokenStream) {
        let is_public = match before {
            [.., TokenTree::Ident(word)] => word == "pub",
            [.., TokenTree::Ident(word), TokenTree::Group(_)] => word == "pub",
            _ => false,
        };
        // `use<'a>` bounds and the like are no imports.
        if let Ok(item) = syn::parse2::<syn::ItemUse>(tokens) {
            let is_public = is_public || !matches!(item.vis, Visibility::Inherited);
            self.flatten(&item.tree, Vec::new(), is_public);
        }
    }

    fn flatten(&mut self, tree: &UseTree, before: Vec<String>, is_public: bool) {
        let with = |name: String| [&before[..], &[name]].concat();
        let mut add = |name: String, path: Vec<String>| self.imports.push(Import { name, path, is_public });
        match tree {
            UseTree::Path(path) => self.flatten(&path.tree, with(path.ident.to_string()), is_public),
            UseTree::Name(name) if name.ident == "self" => {
                add(before.last().cloned().unwrap_or_default(), before.clone())
            }
            UseTree::Name(name) => add(name.ident.to_string(), with(name.ident.to_string())),
            UseTree::Rename(rename) => add(rename.rename.to_string(), with(rename.ident.to_string())),
            UseTree::Glob(_) => add("*".to_owned(), before.clone()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.flatten(tree, before.clone(), is_public)),
        }
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_test(attributes: &[Attribute]) -> bool {
    let text = |attribute: &Attribute| attribute.to_token_stream().to_string().replace(' ', "");
    attributes.iter().map(text).any(|text| text == "#[cfg(test)]" || text.starts_with("#[cfg(all(test,"))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the name that an item defines.
fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::TraitAlias(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}
