// Errors and losses of a softmax with cross-entropy, one thread a row.
@group(0) @binding(0) var<storage, read_write> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> labels: array<u32>;
@group(0) @binding(2) var<storage, read_write> errors: array<f32>;
@group(0) @binding(3) var<storage, read_write> losses: array<f32>;

@compute @workgroup_size(64) fn softmax_cross_entropy(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = thread(id);
    if t >= p.rows { return; }
    let begin = p.at0 + t * p.width;
    let to = p.at2 + t * p.width;
    let label = labels[p.at1 + t];
    var top = logits[begin];
    for (var j = 1u; j < p.width; j++) { top = max(top, logits[begin + j]); }
    var sum = 0.0;
    for (var j = 0u; j < p.width; j++) {
        let value = exp(logits[begin + j] - top);
        errors[to + j] = value;
        sum += value;
    }
    losses[p.at3 + t] = log(sum) - (logits[begin + label] - top);
    for (var j = 0u; j < p.width; j++) {
        errors[to + j] = (errors[to + j] / sum - select(0.0, 1.0, j == label)) / f32(p.rows);
    }
}
