//! Algorithms as stage functions: PageRank, matrix factorization
