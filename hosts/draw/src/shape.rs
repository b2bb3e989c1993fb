//! Outlines of signs.

use maud::{Markup, Render, html};

/// The outline of a sign, around the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A triangle that points up.
    Up,
    /// A triangle that points down.
    Down,
    /// A triangle that points to the left.
    Back,
    /// A cross.
    Cross,
    /// An empty circle.
    Circle,
    /// A diamond.
    Diamond,
    /// An empty diamond.
    Hollow,
}

impl Render for Shape {
    fn render(&self) -> Markup {
        const CROSS: &str = "M-5 -5 L5 5 M-5 5 L5 -5";
        const DIAMOND: &str = "M0 -6 L6 0 L0 6 L-6 0 Z";
        match self {
            Self::Up => html! { path.solid d="M-5 4 L0 -5 L5 4 Z" {} },
            Self::Down => html! { path.solid d="M-5 -4 L0 5 L5 -4 Z" {} },
            Self::Back => html! { path.solid d="M5 -5 L-4 0 L5 5 Z" {} },
            Self::Cross => html! { path.halo d=(CROSS) {} path.stroke d=(CROSS) {} },
            Self::Circle => html! { circle.hollow r="3.4" {} },
            Self::Diamond => html! { path.solid d=(DIAMOND) {} },
            Self::Hollow => html! { path.hollow d=(DIAMOND) {} },
        }
    }
}

impl Shape {
    /// The sign in a [`legend`](crate::legend).
    #[must_use]
    pub fn sample(self, class: &str) -> Markup {
        html! { g class={ "sign " (class) } { (self) } }
    }
}
