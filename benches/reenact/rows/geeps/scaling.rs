//! GeePS, Figures 4.6 and 4.8a: throughput by the number of machines. Modelled, on exact shapes.

use megagrid_geeps::apps::Shapes;
use megagrid_geeps::modelled::Setting;

use super::timing::{BSP, IMAGES, MACHINE, ON_HOSTS, plan, time};
use megagrid_benches::findings::Findings;
use megagrid_benches::networks::{googlenet, krizhevsky, video};

/// A network that is trained on 1, 2, 4, … machines.
struct Job {
    name: &'static str,
    plot: &'static str,
    network: Shapes,
    /// Images of a mini-batch of a machine.
    images: usize,
    most_machines: usize,
}

/// What came of it on the most machines, as times of a machine that trains by itself.
struct Scaled {
    geeps: f64,
    on_hosts: f64,
    /// The part of GeePS' time in which devices did not compute.
    stalled: f64,
}

/// Figure 4.6: images a second of two networks, on 1 to 16 machines.
pub fn images(findings: &mut Findings) {
    let network = krizhevsky(IMAGES);
    let large = Job { name: "22,000 classes", plot: "row-20-images-large", network, images: IMAGES, most_machines: 16 };
    let network = googlenet(32);
    let small = Job { name: "GoogLeNet", plot: "row-20-images", network, images: 32, most_machines: 16 };
    for job in [large, small] {
        let Scaled { geeps, on_hosts, stalled } = scale(findings, &job);
        let claim = format!("{}: 16 machines are {geeps:.1} times one that trains by itself (13)", job.name);
        findings.check(claim, geeps >= 10.0);
        let times = geeps / on_hosts;
        findings.check(format!("{}: {times:.1} times a server on hosts (over 2)", job.name), times >= 2.0);
        let claim = format!("{}: devices stall {:.0} % of the time (8 %)", job.name, 100.0 * stalled);
        findings.check(claim, stalled < 0.15);
    }
}

/// Figure 4.8a: frames a second of a recurrent network, on 1 to 8 machines, each of which takes one video an iteration.
pub fn videos(findings: &mut Findings) {
    /// Frames of a video (Table 4.2).
    const FRAMES: usize = 32;
    let network = video(FRAMES);
    let job = Job { name: "videos", plot: "row-20-videos", network, images: FRAMES, most_machines: 8 };
    let times = scale(findings, &job).geeps;
    findings.check(format!("videos: 8 machines are {times:.1} times one that trains by itself (8)"), times >= 6.5);
    findings.cannot("Figure 4.8b, accuracy of videos by time: there are no videos and no devices here");
}

fn scale(findings: &mut Findings, job: &Job) -> Scaled {
    let plan = plan(&job.network, None);
    let by_itself = {
        let time = time(&plan, &MACHINE, &Setting { workers: 1, ..BSP });
        job.images as f64 / (time.seconds - time.stalled)
    };
    let mut lines = ["one by itself", "GeePS", "server on hosts"].map(|name| (name.to_owned(), Vec::new()));
    let mut scaled = Scaled { geeps: 1.0, on_hosts: 1.0, stalled: 0.0 };
    for workers in (0..).map(|power| 1 << power).take_while(|&workers| workers <= job.most_machines) {
        let [geeps, on_hosts] = [BSP, ON_HOSTS].map(|setting| time(&plan, &MACHINE, &Setting { workers, ..setting }));
        let rates = [&geeps, &on_hosts].map(|time| (workers * job.images) as f64 / time.seconds);
        println!(
            "    {}: {workers:2} machines, {:.0} images/s, {:.0} with a server on hosts, {by_itself:.0} of one by itself",
            job.name, rates[0], rates[1]
        );
        let points = [by_itself, rates[0], rates[1]];
        lines.iter_mut().zip(points).for_each(|(line, rate)| line.1.push((workers as f64, rate)));
        let stalled = geeps.stalled / geeps.seconds;
        scaled = Scaled { geeps: rates[0] / by_itself, on_hosts: rates[1] / by_itself, stalled };
    }
    let title = format!("{} by machines, modelled (GeePS, Figures 4.6 and 4.8a)", job.name);
    findings.plot(job.plot, &title, ["machines", "images a second"], lines.to_vec());
    scaled
}
