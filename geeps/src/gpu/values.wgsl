// One thread a value. `x` and `y` are the first and the second range of the command.
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
// Copies are of bits: a value may be an index.
@group(0) @binding(0) var<storage, read_write> x_bits: array<u32>;
@group(0) @binding(1) var<storage, read_write> y_bits: array<u32>;

@compute @workgroup_size(64) fn fill(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t < p.rows { x[p.at0 + t] = p.alpha; }
}

@compute @workgroup_size(64) fn copy(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t < p.rows { y_bits[p.at1 + t] = x_bits[p.at0 + t]; }
}

@compute @workgroup_size(64) fn axpy(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t < p.rows { y[p.at1 + t] += p.alpha * x[p.at0 + t]; }
}

@compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t < p.rows { y[p.at1 + t] = p.alpha * x[p.at0 + t]; }
}

// x is the gradient and becomes the update, y is the history.
@compute @workgroup_size(64) fn adagrad(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t >= p.rows { return; }
    let gradient = x[p.at0 + t];
    let history = y[p.at1 + t] + gradient * gradient;
    y[p.at1 + t] = history;
    x[p.at0 + t] = -p.alpha * gradient / (sqrt(history) + p.beta);
}

// Not `max`, which may make 0 of what is no number.
@compute @workgroup_size(64) fn relu(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t < p.rows && x[p.at0 + t] < 0.0 { x[p.at0 + t] = 0.0; }
}

@compute @workgroup_size(64) fn relu_gradient(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t < p.rows && x[p.at0 + t] <= 0.0 { y[p.at1 + t] = 0.0; }
}

@compute @workgroup_size(64) fn add_bias(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t < p.rows * p.width { y[p.at1 + t] += x[p.at0 + t % p.width]; }
}

// One thread a column, which adds its values from the first row to the last.
@compute @workgroup_size(64) fn sum_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t >= p.width { return; }
    var sum = 0.0;
    for (var row = 0u; row < p.rows; row++) { sum += x[p.at0 + row * p.width + t]; }
    y[p.at1 + t] = p.alpha * sum;
}
