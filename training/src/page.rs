//! What pages have in common: how they look, and data within them.

use serde_json::Value;

/// How a page looks, light and dark, wide and narrow.
pub const STYLE: &str = include_str!("page.css");

/// Functions that make elements: `make`, `draw`, `shown`.
pub const SCRIPT: &str = include_str!("page.js");

/// Puts [`STYLE`] and [`SCRIPT`] where a page says `/* page.css */` and `/* page.js */`.
#[must_use]
pub fn filled(html: &str) -> String {
    html.replace("/* page.css */", STYLE).replace("/* page.js */", SCRIPT)
}

/// Writes JSON so that it can stand in an element of HTML: no text in it ends the element.
#[must_use]
pub fn json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}
