//! The shapes of published networks.

use megagrid_geeps::apps::Shapes;
use megagrid_geeps::apps::shapes::Shape;

/// A layer of filters: channels, the side of what is put out, the side of a filter and the channels that it sees.
fn convolution(name: &'static str, [channels, side, filter, seen]: [usize; 4]) -> Shape {
    let outputs = channels * side * side;
    let weights = filter * filter * seen;
    Shape { name, params: channels * (weights + 1), outputs, products: outputs * weights }
}

/// A layer that pools squares of `window` by `window`.
fn pooling(name: &'static str, channels: usize, side: usize, window: usize) -> Shape {
    let outputs = channels * side * side;
    Shape { name, params: 0, outputs, products: outputs * window * window }
}

fn full(name: &'static str, inputs: usize, outputs: usize) -> Shape {
    Shape { name, params: (inputs + 1) * outputs, outputs, products: inputs * outputs }
}

/// An inception module, whose branches are in one layer, on `seen` channels of `side` by `side`: filters of 1 × 1, those that reduce
/// channels before filters of 3 × 3, these, the same of 5 × 5, and those behind the pooling.
fn inception(name: &'static str, [side, seen]: [usize; 2], filters: [usize; 6]) -> Shape {
    let [one, reduce_three, three, reduce_five, five, pooled] = filters;
    let pool = pooling(name, seen, side, 3);
    let parts = [
        convolution(name, [one, side, 1, seen]),
        convolution(name, [reduce_three, side, 1, seen]),
        convolution(name, [three, side, 3, reduce_three]),
        convolution(name, [reduce_five, side, 1, seen]),
        convolution(name, [five, side, 5, reduce_five]),
        pool,
        convolution(name, [pooled, side, 1, seen]),
    ];
    let sum = |of: fn(&Shape) -> usize| parts.iter().map(of).sum::<usize>();
    Shape {
        name,
        params: sum(|part| part.params),
        outputs: sum(|part| part.outputs),
        products: sum(|part| part.products),
    }
}

/// A layer of long short-term memory: four gates, which see the inputs and what was put out before.
fn memory_cells(name: &'static str, inputs: usize, cells: usize) -> Shape {
    let gates = 4 * cells;
    let seen = inputs + cells;
    // Gates and cells are kept beside what is put out.
    Shape { name, params: (seen + 1) * gates, outputs: gates + 2 * cells, products: seen * gates }
}

/// The layers of GoogLeNet up to the features of an image: Table 1 of Szegedy et al. (2015), without the classifiers in the middle.
fn features() -> Vec<Shape> {
    vec![
        convolution("conv1", [64, 112, 7, 3]),
        pooling("pool1", 64, 56, 3),
        convolution("reduce2", [64, 56, 1, 64]),
        convolution("conv2", [192, 56, 3, 64]),
        pooling("pool2", 192, 28, 3),
        inception("3a", [28, 192], [64, 96, 128, 16, 32, 32]),
        inception("3b", [28, 256], [128, 128, 192, 32, 96, 64]),
        pooling("pool3", 480, 14, 3),
        inception("4a", [14, 480], [192, 96, 208, 16, 48, 64]),
        inception("4b", [14, 512], [160, 112, 224, 24, 64, 64]),
        inception("4c", [14, 512], [128, 128, 256, 24, 64, 64]),
        inception("4d", [14, 512], [112, 144, 288, 32, 64, 64]),
        inception("4e", [14, 528], [256, 160, 320, 32, 128, 128]),
        pooling("pool4", 832, 7, 3),
        inception("5a", [7, 832], [256, 160, 320, 32, 128, 128]),
        inception("5b", [7, 832], [384, 192, 384, 48, 128, 128]),
        pooling("pool5", 1024, 1, 7),
    ]
}

/// The network of Krizhevsky et al. (2012), its groups included, for 22,000 classes: five convolutional layers
/// and three that are fully connected, as the thesis' AdamLike model, whose shapes were not published.
pub fn krizhevsky(images: usize) -> Shapes {
    let layers = vec![
        convolution("conv1", [96, 55, 11, 3]),
        pooling("pool1", 96, 27, 3),
        convolution("conv2", [256, 27, 5, 48]),
        pooling("pool2", 256, 13, 3),
        convolution("conv3", [384, 13, 3, 256]),
        convolution("conv4", [384, 13, 3, 192]),
        convolution("conv5", [256, 13, 3, 192]),
        pooling("pool5", 256, 6, 3),
        full("fc6", 256 * 6 * 6, 4096),
        full("fc7", 4096, 4096),
        full("fc8", 4096, 22_000),
    ];
    Shapes::new(layers, 3 * 227 * 227, images)
}

/// GoogLeNet for 1,000 classes (Szegedy et al., 2015, Table 1), without the classifiers in the middle, an inception module a layer.
pub fn googlenet(images: usize) -> Shapes {
    let mut layers = features();
    layers.push(full("classes", 1024, 1000));
    Shapes::new(layers, 3 * 224 * 224, images)
}

/// The thesis' network of videos (section 4.4.1): GoogLeNet on each frame, two layers of 256 memory cells on its features, 101 classes.
/// How many layers of cells there were was not published. Frames stand for images: those of a video are in one mini-batch.
pub fn video(frames: usize) -> Shapes {
    let mut layers = features();
    layers.extend([memory_cells("lstm1", 1024, 256), memory_cells("lstm2", 256, 256), full("classes", 256, 101)]);
    Shapes::new(layers, 3 * 224 * 224, frames)
}

/// Layers that are fully connected, all of `width` outputs, as in Figure 4.11.
pub fn stack(layers: usize, width: usize, images: usize) -> Shapes {
    Shapes::new(vec![full("full", width, width); layers], width, images)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1 of Szegedy et al. (2015): weights by 1,024, and millions of products. Weights of 4c are 7 % more than it has, of 5a 5 % less.
    #[test]
    fn modules_of_googlenet_have_the_published_sizes() {
        let published = [
            ("3a", 159, 128),
            ("3b", 380, 304),
            ("4a", 364, 73),
            ("4b", 437, 88),
            ("4c", 463, 100),
            ("4d", 580, 119),
            ("4e", 840, 170),
            ("5a", 1072, 54),
            ("5b", 1388, 71),
        ];
        let network = googlenet(1);
        for (name, params, products) in published {
            let layer = network.layers().iter().find(|layer| layer.name == name).expect("it has this layer");
            let near = |found: usize, unit: f64, published: i32| {
                let apart = found as f64 / unit / f64::from(published) - 1.0;
                assert!(apart.abs() < 0.08, "{name}: {found} instead of {published}");
            };
            near(layer.params, 1024.0, params);
            near(layer.products, 1e6, products);
        }
    }
}
