// Updates of the factors of each rating, one thread a rating.
@group(0) @binding(0) var<storage, read_write> left: array<f32>;
@group(0) @binding(1) var<storage, read_write> right: array<f32>;
@group(0) @binding(2) var<storage, read_write> ratings: array<f32>;
@group(0) @binding(3) var<storage, read_write> left_update: array<f32>;
@group(0) @binding(4) var<storage, read_write> right_update: array<f32>;
@group(0) @binding(5) var<storage, read_write> losses: array<f32>;

// alpha is the step, beta lambda.
@compute @workgroup_size(64) fn factor_updates(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t >= p.rows { return; }
    var product = 0.0;
    for (var j = t * p.width; j < (t + 1u) * p.width; j++) { product += left[p.at0 + j] * right[p.at1 + j]; }
    let error = ratings[p.at2 + t] - product;
    for (var j = t * p.width; j < (t + 1u) * p.width; j++) {
        let of_left = left[p.at0 + j];
        let of_right = right[p.at1 + j];
        left_update[p.at3 + j] = p.alpha * (error * of_right - p.beta * of_left);
        right_update[p.at4 + j] = p.alpha * (error * of_left - p.beta * of_right);
    }
    losses[p.at5 + t] = error * error;
}
