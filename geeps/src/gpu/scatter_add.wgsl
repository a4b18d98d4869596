// Adds sums of a batch's rows to rows of a table, without atomics: one thread owns a value of the table, and sums what is
// added to it in the order of the batch. Of the table `inner` rows are bound, from row `first`.
@group(0) @binding(0) var<storage, read_write> batch: array<f32>;
@group(0) @binding(1) var<storage, read_write> targets: array<u32>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>;
@group(0) @binding(4) var<storage, read_write> table: array<f32>;

@compute @workgroup_size(64) fn scatter_add(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t >= p.rows * p.width { return; }
    let segment = t / p.width;
    let column = t % p.width;
    let row = targets[p.at1 + segment] - p.first;
    if row >= p.inner { return; }
    let to = p.at4 + row * p.width + column;
    var sum = 0.0;
    for (var i = starts[p.at2 + segment]; i < starts[p.at2 + segment + 1u]; i++) {
        sum += batch[p.at0 + order[p.at3 + i] * p.width + column];
    }
    table[to] += sum;
}
