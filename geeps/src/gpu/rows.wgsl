// Rows between a batch and a table, one thread a value. Bits are copied, since a value may be an index. Of the table
// `inner` rows are bound, from row `first`: what is about others is left to the dispatches that have those.
@group(0) @binding(0) var<storage, read_write> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;

@compute @workgroup_size(64) fn gather(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t >= p.rows * p.width { return; }
    // Below the first row this wraps around, to more rows than there are.
    let row = keys[p.at1 + t / p.width] - p.first;
    if row < p.inner { to[p.at2 + t] = source[p.at0 + row * p.width + t % p.width]; }
}

@compute @workgroup_size(64) fn put(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t >= p.rows * p.width { return; }
    let row = keys[p.at1 + t / p.width] - p.first;
    if row < p.inner { to[p.at2 + row * p.width + t % p.width] = source[p.at0 + t]; }
}
