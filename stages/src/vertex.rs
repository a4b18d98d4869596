//! Vertex types and the four roles of their data.

use crate::store::{Additive, Store};

/// One side of the graph: `User`, `Item`, `Document`, `Word`, `Sample`, `Feature`, `Page`.
///
/// Vertex data is heterogeneous twice over (TuX² §3.1): each type has its own data, and each role is stored, and travels,
/// by itself. A role is the type that its view shows ([`Store`]). Any role may be `()`. The first value of every role is
/// all-zero bytes until the program's user sets it.
///
/// [`vertex!`](crate::vertex!) declares one; implement the trait by hand for [`COUNTS`](Self::COUNTS), [`RESTS`](Self::RESTS) and
/// [`refresh`](Self::refresh).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a vertex",
    note = "write a type that `vertex!` declares, not a side of the graph"
)]
pub trait Vertex: 'static {
    /// What master and mirrors agree on at an Apply (TuX²'s `VertexDataSync`). Travels master -> mirrors.
    type Sync: Store + ?Sized;
    /// What a replica accumulates between two Applies. Travels mirrors -> master.
    type Delta: Additive + ?Sized;
    /// Held by the master only and seen by Apply only: optimizer state, say. Never travels.
    type Master: Store + ?Sized;
    /// Held by each replica only: history or a cache built from the synced data. Never travels.
    type Mirror: Store + ?Sized;

    /// Whether its numbers are counts: whole, most of them small and many zero. Those travel in a byte or two each between
    /// processes, and zeros in a bit; other numbers arrive as they were too, in more bytes than without this.
    const COUNTS: bool = false;

    /// Whether vertices of this type [rest](Self::is_resting) at times.
    const RESTS: bool = false;

    /// Tells whether a vertex rests. An Apply and an Aggregate pass it by then, and so does an Exchange that asks for
    /// [groups](crate::Exchange::GROUPED), at right vertices, unless they say that they visit it. The engine lists the others, so that an
    /// iteration costs what these do, however many rest.
    #[inline(always)]
    fn is_resting(_sync: &Self::Sync) -> bool {
        false
    }

    /// Brings a replica's own data up to date with synced data that an Apply has changed, or that another process sent: runs once for
    /// each replica. A stage that changes synced data in place ([`Update`](crate::Update), a Gather), and first values, are given the replica's own data,
    /// and set them themselves.
    #[inline(always)]
    fn refresh(_mirror: &mut Self::Mirror, _old: &Self::Sync, _new: &Self::Sync) {}
}

/// A side without data.
impl Vertex for () {
    type Sync = ();
    type Delta = ();
    type Master = ();
    type Mirror = ();
}

/// Declares a vertex type by the roles of its data: `sync`, `delta`, `master` and `mirror` of [`Vertex`](crate::Vertex).
/// Those left out are `()`.
///
/// # Examples
/// ```
/// megagrid_stages::vertex! {
///     /// A user: a factor, its gradient, and the sum of squared gradients.
///     pub struct User { sync: [f32], delta: [f32], master: f32 }
/// }
/// ```
/// Another role is refused:
/// ```compile_fail
/// megagrid_stages::vertex! { struct User { sync: [f32], gradient: [f32] } }
/// ```
#[macro_export]
macro_rules! vertex {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($roles:tt)* }) => {
        $(#[$meta])*
        $vis struct $name;
        $crate::vertex!(@ $name [()] [()] [()] [()] $($roles)*);
    };
    (@ $name:ident [$sync:ty] [$delta:ty] [$master:ty] [$mirror:ty]) => {
        impl $crate::Vertex for $name {
            type Sync = $sync;
            type Delta = $delta;
            type Master = $master;
            type Mirror = $mirror;
        }
    };
    (@ $n:ident [$s:ty] [$d:ty] [$m:ty] [$r:ty] $(#[$_doc:meta])* sync: $t:ty $(, $($rest:tt)*)?) => {
        $crate::vertex!(@ $n [$t] [$d] [$m] [$r] $($($rest)*)?);
    };
    (@ $n:ident [$s:ty] [$d:ty] [$m:ty] [$r:ty] $(#[$_doc:meta])* delta: $t:ty $(, $($rest:tt)*)?) => {
        $crate::vertex!(@ $n [$s] [$t] [$m] [$r] $($($rest)*)?);
    };
    (@ $n:ident [$s:ty] [$d:ty] [$m:ty] [$r:ty] $(#[$_doc:meta])* master: $t:ty $(, $($rest:tt)*)?) => {
        $crate::vertex!(@ $n [$s] [$d] [$t] [$r] $($($rest)*)?);
    };
    (@ $n:ident [$s:ty] [$d:ty] [$m:ty] [$r:ty] $(#[$_doc:meta])* mirror: $t:ty $(, $($rest:tt)*)?) => {
        $crate::vertex!(@ $n [$s] [$d] [$m] [$t] $($($rest)*)?);
    };
    (@ $n:ident [$s:ty] [$d:ty] [$m:ty] [$r:ty] $(#[$_doc:meta])* $other:ident $($rest:tt)*) => {
        compile_error!(concat!(
            "`", stringify!($other), "` is no role of a vertex: write `sync`, `delta`, `master` or `mirror`, each with a type"
        ));
    };
}
