//! Functions and closures as stages: the types of their arguments say what they do.
//!
//! | stage | function |
//! |---|---|
//! | exchange | `Fn(left, right)`, each a [`Read`], [`Add`] or [`Update`], then, if it needs them, `&Edge` (or `&mut Edge`, to change it), `&mut Context` |
//! | apply | `Fn(Master)`, then, if it needs it, `&mut Context` |
//! | incident | `Fn(Update, &mut [EdgeItem])`, then, if it needs it, `&mut Context` |
//! | global sync | `Fn(Worker, &mut Global)` |
//!
//! [`additive`] says of an Apply's function that it may be given parts of sums. A type that implements [`Exchange`], [`Apply`], [`Incident`] or [`GlobalSync`] goes wherever a function goes.

use std::marker::PhantomData;

use crate::exchange::Exchange;
use crate::mode;
use crate::program::{Context, EdgeItem, Program};
use crate::vertex::Vertex;
use crate::vertex_stages::{Apply, GlobalSync, Incident};
use crate::view::{Add, Master, Read, Update};

/// A function as a stage. `Form` tells functions of different arguments apart.
pub struct Function<F, Form>(F, PhantomData<fn() -> Form>);

/// The form of what is a stage already.
pub enum Stage {}
/// The form of a function that sees no context.
pub enum Bare {}
/// The form of a function that sees the context.
pub enum WithContext {}

macro_rules! into_stage {
    ($(#[$meta:meta])* $into:ident<P $(, $v:ident)?>: $stage:ident) => {
        $(#[$meta])*
        pub trait $into<P: Program $(, $v: Vertex)?, Form> {
            /// The stage.
            type Stage: $stage<P $(, $v)?>;
            /// Makes the stage.
            fn into_stage(self) -> Self::Stage;
        }

        impl<P: Program $(, $v: Vertex)?, S: $stage<P $(, $v)?>> $into<P $(, $v)?, Stage> for S {
            type Stage = S;

            fn into_stage(self) -> S {
                self
            }
        }
    };
}

into_stage! {
    /// What [`Sequence::exchange`](crate::Sequence::exchange) takes: a function on an edge, or a type that implements
    /// [`Exchange`].
    ///
    /// # Examples
    /// ```
    /// use megagrid_stages::*;
    /// vertex! { struct Page { sync: u32, delta: u32 } }
    /// program! { struct Links { vertices: Page, edge: u32 } }
    /// Sequence::<Links>::new()
    ///     .exchange(|_: Read<Page>, to: Add<Page>| *to.delta += 1)
    ///     .exchange(|_: Read<Page>, to: Add<Page>, weight: &u32| *to.delta += *weight);
    /// ```
    /// Arguments of another vertex type, an edge of another type, a context before the edge, and captures that threads
    /// cannot share do not fit:
    /// ```compile_fail,E0277
    /// # use megagrid_stages::*;
    /// # vertex! { struct Page { sync: u32, delta: u32 } }
    /// # vertex! { struct User { sync: u32, delta: u32 } }
    /// # program! { struct Links { vertices: Page, edge: u32 } }
    /// Sequence::<Links>::new().exchange(|_: Read<User>, to: Add<Page>| *to.delta += 1);
    /// ```
    /// ```compile_fail,E0277
    /// # use megagrid_stages::*;
    /// # vertex! { struct Page { sync: u32, delta: u32 } }
    /// # program! { struct Links { vertices: Page, edge: u32 } }
    /// Sequence::<Links>::new().exchange(|_: Read<Page>, to: Add<Page>, weight: &mut f32| *to.delta += *weight as u32);
    /// ```
    /// ```compile_fail,E0277
    /// # use megagrid_stages::*;
    /// # vertex! { struct Page { sync: u32, delta: u32 } }
    /// # program! { struct Links { vertices: Page, edge: u32 } }
    /// Sequence::<Links>::new().exchange(|_: Read<Page>, _: Add<Page>, _: &mut Context<Links>, _: &mut u32| {});
    /// ```
    /// ```compile_fail,E0277
    /// # use megagrid_stages::*;
    /// # vertex! { struct Page { sync: u32, delta: u32 } }
    /// # program! { struct Links { vertices: Page, edge: u32 } }
    /// let one = std::rc::Rc::new(1);
    /// Sequence::<Links>::new().exchange(move |_: Read<Page>, to: Add<Page>| *to.delta += *one);
    /// ```
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a function on an edge of `{P}`",
        label = "its arguments do not fit the program",
        note = "write fn(left: Read<L>, right: Add<R>), with Read, Add or Update of the left and of the right vertex type of the program",
        note = "then, if you need them, `edge: &E` (`&mut E` to change it) with the edge type of the program, and `cx: &mut Context<P>`",
        note = "what a closure captures has to be `Send`, `Sync` and owned: write `move`"
    )]
    IntoExchange<P>: Exchange
}

into_stage! {
    /// What [`Sequence::apply`](crate::Sequence::apply) takes: a function on a vertex at its master, or a type that
    /// implements [`Apply`].
    ///
    /// A function on the vertices of the other side does not fit:
    /// ```compile_fail,E0277
    /// # use megagrid_stages::*;
    /// # vertex! { struct User { sync: u32, delta: u32 } }
    /// # vertex! { struct Item { sync: u32, delta: u32 } }
    /// # program! { struct Ratings { left: User, right: Item } }
    /// Sequence::<Ratings>::new().apply(Right, |user: Master<User>| *user.sync = *user.delta);
    /// ```
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a function on a `{V}` of `{P}`",
        label = "its arguments do not fit the vertices of that side",
        note = "write fn(vertex: Master<{V}>) and then, if you need it, `cx: &mut Context<P>`; or apply it to the other side"
    )]
    IntoApply<P, V>: Apply
}

into_stage! {
    /// What [`Sequence::incident`](crate::Sequence::incident) takes: a function on a vertex and the data of its edges, or a
    /// type that implements [`Incident`].
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a function on a `{V}` of `{P}` and its edges",
        label = "its arguments do not fit the vertices of that side",
        note = "write fn(vertex: Update<{V}>, items: &mut [E]) with what an edge of the program carries, and then, if you need it, \
                `cx: &mut Context<P>`"
    )]
    IntoIncident<P, V>: Incident
}

into_stage! {
    /// What [`Sequence::global_sync`](crate::Sequence::global_sync) takes: a function on the sum of the worker contexts, or
    /// a type that implements [`GlobalSync`].
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a function on the contexts of `{P}`",
        note = "write fn(total: Worker, global: &mut Global) with the worker and the global type of the program"
    )]
    IntoGlobalSync<P>: GlobalSync
}

macro_rules! edge_function {
    ($left:ident, $right:ident, $n:literal, $changes:literal, ($($edge:ident: $e:ty)?), ($($cx:ident: $c:ty)?)) => {
        impl<P: Program, F> Exchange<P> for Function<F, (mode::$left, mode::$right, [(); $n])>
        where
            F: Fn($left<'_, P::Left>, $right<'_, P::Right> $(, $e)? $(, $c)?) + Send + Sync + 'static,
        {
            type Left = mode::$left;
            type Right = mode::$right;
            const CHANGES_EDGES: bool = $changes;

            #[inline(always)]
            fn exchange(
                &self,
                left: $left<'_, P::Left>,
                right: $right<'_, P::Right>,
                _edge: &mut P::Edge,
                _cx: &mut Context<'_, P>,
            ) {
                $(let $edge = _edge;)?
                $(let $cx = _cx;)?
                (self.0)(left, right $(, $edge)? $(, $cx)?);
            }
        }

        impl<P: Program, F> IntoExchange<P, (mode::$left, mode::$right, [(); $n])> for F
        where
            F: Fn($left<'_, P::Left>, $right<'_, P::Right> $(, $e)? $(, $c)?) + Send + Sync + 'static,
        {
            type Stage = Function<F, (mode::$left, mode::$right, [(); $n])>;

            fn into_stage(self) -> Self::Stage {
                Function(self, PhantomData)
            }
        }
    };
}

macro_rules! edge_functions {
    ($($left:ident $right:ident),*) => { $(
        edge_function!($left, $right, 0, false, (), ());
        edge_function!($left, $right, 1, false, (edge: &P::Edge), ());
        edge_function!($left, $right, 2, true, (edge: &mut P::Edge), ());
        edge_function!($left, $right, 3, false, (), (cx: &mut Context<'_, P>));
        edge_function!($left, $right, 4, false, (edge: &P::Edge), (cx: &mut Context<'_, P>));
        edge_function!($left, $right, 5, true, (edge: &mut P::Edge), (cx: &mut Context<'_, P>));
    )* };
}
edge_functions!(Read Read, Read Add, Read Update, Add Read, Add Add, Add Update, Update Read, Update Add, Update Update);

macro_rules! vertex_function {
    ($form:ident, $into:ident, $stage:ident by $method:ident, ($($arg:ident: $t:ty),*), ($($cx:ident: $c:ty)?)) => {
        impl<P: Program, V: Vertex, F> $stage<P, V> for Function<F, $form>
        where
            F: Fn($($t),* $(, $c)?) + Send + Sync + 'static,
        {
            #[inline(always)]
            fn $method(&self, $($arg: $t,)* _cx: &mut Context<'_, P>) {
                $(let $cx = _cx;)?
                (self.0)($($arg),* $(, $cx)?);
            }
        }

        impl<P: Program, V: Vertex, F> $into<P, V, $form> for F
        where
            F: Fn($($t),* $(, $c)?) + Send + Sync + 'static,
        {
            type Stage = Function<F, $form>;

            fn into_stage(self) -> Self::Stage {
                Function(self, PhantomData)
            }
        }
    };
}
vertex_function!(Bare, IntoApply, Apply by apply, (vertex: Master<'_, V>), ());
vertex_function!(WithContext, IntoApply, Apply by apply, (vertex: Master<'_, V>), (cx: &mut Context<'_, P>));
vertex_function!(Bare, IntoIncident, Incident by visit, (vertex: Update<'_, V>, items: &mut [EdgeItem<P>]), ());
vertex_function!(
    WithContext, IntoIncident, Incident by visit,
    (vertex: Update<'_, V>, items: &mut [EdgeItem<P>]), (cx: &mut Context<'_, P>)
);

/// A function of [`additive`].
pub struct AdditiveFunction<F>(F);

/// Says of a function for [`Sequence::apply`](crate::Sequence::apply) that applying parts of a sum is as good as applying the sum: see
/// [`Apply::ADDITIVE`].
///
/// # Examples
/// ```
/// use megagrid_stages::*;
/// vertex! { struct Sample { sync: f32 } }
/// vertex! { struct Weight { sync: f32, delta: f32 } }
/// program! { struct Linear { left: Sample, right: Weight, edge: f32 } }
/// Sequence::<Linear>::new()
///     .exchange(|sample: Read<Sample>, weight: Add<Weight>, x: &f32| *weight.delta += *x * *sample.sync)
///     .apply(Right, additive(|weight: Master<Weight>| *weight.sync -= 0.1 * *weight.delta));
/// ```
pub fn additive<F>(apply: F) -> AdditiveFunction<F> {
    AdditiveFunction(apply)
}

impl<P: Program, V: Vertex, A: Apply<P, V>> Apply<P, V> for Function<A, AdditiveFunction<()>> {
    const ADDITIVE: bool = true;

    #[inline(always)]
    fn is_active(&self, vertex: Read<'_, V>, cx: &Context<'_, P>) -> bool {
        self.0.is_active(vertex, cx)
    }

    #[inline(always)]
    fn visits_resting(&self, cx: &Context<'_, P>) -> bool {
        self.0.visits_resting(cx)
    }

    #[inline(always)]
    fn apply(&self, vertex: Master<'_, V>, cx: &mut Context<'_, P>) {
        self.0.apply(vertex, cx);
    }
}

impl<P: Program, V: Vertex, F: IntoApply<P, V, Form>, Form> IntoApply<P, V, AdditiveFunction<Form>>
    for AdditiveFunction<F>
{
    type Stage = Function<F::Stage, AdditiveFunction<()>>;

    fn into_stage(self) -> Self::Stage {
        Function(self.0.into_stage(), PhantomData)
    }
}

impl<P: Program, F: Fn(P::Worker, &mut P::Global) + Send + Sync + 'static> GlobalSync<P> for Function<F, Bare> {
    fn apply(&self, total: P::Worker, global: &mut P::Global) {
        (self.0)(total, global);
    }
}

impl<P: Program, F: Fn(P::Worker, &mut P::Global) + Send + Sync + 'static> IntoGlobalSync<P, Bare> for F {
    type Stage = Function<F, Bare>;

    fn into_stage(self) -> Self::Stage {
        Function(self, PhantomData)
    }
}
