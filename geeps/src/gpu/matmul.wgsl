// to = alpha · A · B. A thread has 4 × 4 values of the product, and sums each over k in ascending order. (On the
// processor, by lavapipe, tiles of 16 × 16 in memory of the workgroup took 5 to 8 times as long, and one value a thread
// 2.5 to 4.5 times.)
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> to: array<f32>;

@compute @workgroup_size(8, 8) fn matmul(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = 4u * id.y;
    let column = 4u * id.x;
    if row >= p.rows || column >= p.width { return; }
    // Beyond the edge the last row and column are summed again, and not stored.
    let rows = min(vec4(row, row + 1u, row + 2u, row + 3u), vec4(p.rows - 1u));
    let columns = min(vec4(column, column + 1u, column + 2u, column + 3u), vec4(p.width - 1u));
    let a_turned = (p.stored & 1u) != 0u;
    let b_turned = (p.stored & 2u) != 0u;
    var at_a = p.at0 + select(rows * p.inner, rows, a_turned);
    var at_b = p.at1 + select(columns, columns * p.inner, b_turned);
    let step_a = select(1u, p.rows, a_turned);
    let step_b = select(p.width, 1u, b_turned);
    var sum0 = vec4(0.0);
    var sum1 = vec4(0.0);
    var sum2 = vec4(0.0);
    var sum3 = vec4(0.0);
    for (var k = 0u; k < p.inner; k++) {
        let of_b = vec4(b[at_b.x], b[at_b.y], b[at_b.z], b[at_b.w]);
        sum0 += a[at_a.x] * of_b;
        sum1 += a[at_a.y] * of_b;
        sum2 += a[at_a.z] * of_b;
        sum3 += a[at_a.w] * of_b;
        at_a += step_a;
        at_b += step_b;
    }
    store(row, column, sum0);
    store(row + 1u, column, sum1);
    store(row + 2u, column, sum2);
    store(row + 3u, column, sum3);
}

fn store(row: u32, column: u32, sums: vec4<f32>) {
    if row >= p.rows { return; }
    for (var j = 0u; j < 4u && column + j < p.width; j++) {
        to[p.at2 + row * p.width + column + j] = p.alpha * sums[j];
    }
}
