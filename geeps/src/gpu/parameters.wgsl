// What a kernel is told: where each range begins in what is bound for it, and sizes.
struct Parameters {
    at0: u32, at1: u32, at2: u32, at3: u32, at4: u32, at5: u32,
    // Values, or rows and their width, or a product of rows × inner by inner × width.
    rows: u32, width: u32, inner: u32,
    // 1: A is stored transposed; 2: B is.
    stored: u32,
    // The first row of a table that is bound.
    first: u32,
    alpha: f32, beta: f32,
}
var<immediate> p: Parameters;

// Workgroups go along x, and on along y where x has no more of them.
fn thread(id: vec3<u32>) -> u32 {
    return id.y * 65535u * 64u + id.x;
}
