//! Printing a plan.
