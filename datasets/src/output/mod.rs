//! Files that other programs open: NumPy arrays and Parquet tables, each output whole or absent.

mod atomic;
mod npy;
mod pages;
mod table;
mod thrift;

pub use atomic::{
    check_replaceable, check_target, renew_directory, replace_directory, replace_file, replace_text, write_directory,
    write_file,
};
pub use npy::{Array, Scalar, read_npy, write_matrix, write_vector};
pub(crate) use pages::{open_column, read_rows};
pub use table::{Column, Table, read_table, write_pieces, write_table};
pub(crate) use table::{fenced, is_unsigned, open_parquet, parquet_error};
