//! The MEGA programming model: vertex data, access modes, stages and their sequence
