//! A GPU, by wgpu on Vulkan. Kernels are in WGSL, in the files beside this one.
//!
//! wgpu has one queue a device: copies and kernels take effect in the order in which they are called, and none
//! overlap. It follows the use of memory by buffer and not by range, so that all bindings are for reading and writing.
//! While a thread waits for the device, others can give it more to do.
//!
//! What the device holds is counted by [`Meter`](crate::memory::Meter), since drivers say nothing reliable of it. Copies
//! go through memory that both sides see, [`STAGING_BYTES`] at most, and wait where it is full.
//!
//! Results are the same bits in every run on one device. They are not those of another device or of
//! [`Cpu`](crate::device::Cpu): a driver may join a multiplication and an addition, and has its own exponential.

mod dispatch;

use std::any::Any;
use std::collections::HashMap;
use std::num::NonZero;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};

use dispatch::{BINDINGS, Dispatch, Parameters, dispatches, window};

use megagrid_partition::parallel::lock;

use crate::Error;
use crate::device::{ALIGNMENT, Command, Device, DeviceRange, VALUE_BYTES, padded};

/// Kernels by the file that they are in.
const KERNELS: [(&str, &[&str]); 6] = [
    (
        concat!(include_str!("parameters.wgsl"), include_str!("values.wgsl")),
        &["fill", "copy", "axpy", "scale", "adagrad", "relu", "relu_gradient", "add_bias", "sum_rows"],
    ),
    (concat!(include_str!("parameters.wgsl"), include_str!("rows.wgsl")), &["gather", "put"]),
    (concat!(include_str!("parameters.wgsl"), include_str!("scatter_add.wgsl")), &["scatter_add"]),
    (concat!(include_str!("parameters.wgsl"), include_str!("matmul.wgsl")), &["matmul"]),
    (concat!(include_str!("parameters.wgsl"), include_str!("softmax.wgsl")), &["softmax_cross_entropy"]),
    (concat!(include_str!("parameters.wgsl"), include_str!("factors.wgsl")), &["factor_updates"]),
];

/// Bytes that copies go through, to the device and from it together.
pub const STAGING_BYTES: u64 = 8 << 20;

/// Values that go through at a time, each way.
const STAGED: usize = (STAGING_BYTES / VALUE_BYTES / 2) as usize;

/// The device.
#[derive(Debug)]
pub struct Gpu {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
    kernels: HashMap<&'static str, wgpu::ComputePipeline>,
    layout: wgpu::BindGroupLayout,
    /// Values that are bound at once, at most.
    limit: usize,
    buffers: RwLock<Vec<wgpu::Buffer>>,
    /// Values on their way to the device, at most.
    uploading: Mutex<usize>,
    /// Held while values come from the device.
    downloading: Mutex<()>,
    fault: Arc<Fault>,
}

/// The first thing that has gone wrong. wgpu tells of it through callbacks, and panics where there are none.
#[derive(Debug, Default)]
struct Fault(Mutex<Option<Error>>);

impl Fault {
    fn set(&self, error: Error) {
        lock(&self.0).get_or_insert(error);
    }

    fn get(&self) -> Option<Error> {
        lock(&self.0).clone()
    }
}

impl Gpu {
    /// Opens the device that wgpu takes for the fastest.
    ///
    /// # Errors
    /// No device with Vulkan, or one that has not what kernels need.
    pub fn new() -> Result<Self, Error> {
        Self::with_binding_limit(NonZero::<usize>::MAX)
    }

    /// Opens the device as one that binds no more than `values` values at a time, as tests do.
    ///
    /// # Errors
    /// Those of [`Gpu::new`].
    pub fn with_binding_limit(values: NonZero<usize>) -> Result<Self, Error> {
        let refused = |reason: &dyn ToString| Error::NoGpu { reason: reason.to_string() };
        let mut asked = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
        asked.backends = wgpu::Backends::VULKAN;
        // Those that compute on the processor say that they do not conform.
        asked.flags |= wgpu::InstanceFlags::ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER;
        let fastest = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = pollster::block_on(wgpu::Instance::new(asked).request_adapter(&fastest));
        let adapter = adapter.map_err(|error| refused(&error))?;
        let limits = adapter.limits();
        let binds = (limits.max_storage_buffer_binding_size / VALUE_BYTES) as usize / ALIGNMENT * ALIGNMENT;
        let needed = wgpu::DeviceDescriptor {
            required_features: wgpu::Features::IMMEDIATES,
            required_limits: wgpu::Limits { max_immediate_size: size_of::<Parameters>() as u32, ..limits.clone() },
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&needed)).map_err(|error| refused(&error))?;
        let fault = Arc::new(Fault::default());
        watch(&device, &fault);
        let (layout, kernels) = compile(&device);
        if let Some(error) = fault.get() {
            return Err(error);
        }
        let name = adapter.get_info().name;
        // What is bound begins up to `ALIGNMENT` values before the range.
        let Some(binds) = binds.checked_sub(ALIGNMENT).and_then(NonZero::new) else {
            return Err(refused(&format!("it binds {} bytes at a time", limits.max_storage_buffer_binding_size)));
        };
        let limit = values.min(binds).get();
        let (buffers, uploading, downloading) = (RwLock::default(), Mutex::default(), Mutex::default());
        Ok(Self { name, device, queue, kernels, layout, limit, buffers, uploading, downloading, fault })
    }

    /// Returns what the driver calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the device up. wgpu tells of it as of one whose driver has crashed.
    pub fn lose(&self) {
        self.device.destroy();
        // It is told of when the device is looked at, which then says what later calls say.
        let _ = self.poll(wgpu::PollType::wait_indefinitely());
    }

    /// Fails where anything has gone wrong so far.
    fn check(&self) -> Result<(), Error> {
        self.fault.get().map_or(Ok(()), Err)
    }

    /// Returns the buffers of ranges, none of which overlap.
    fn buffers(&self, command: &'static str, ranges: &[DeviceRange]) -> Result<Vec<wgpu::Buffer>, Error> {
        let refused = |problem: &str| Err(Error::Command { command, problem: problem.to_owned() });
        let all = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
        let of = |range: &DeviceRange| {
            let buffer = all.get(range.buffer as usize)?;
            (range.start + range.len <= len_of(buffer)).then(|| buffer.clone())
        };
        let Some(buffers) = ranges.iter().map(of).collect() else {
            return refused("a range goes beyond the memory that was taken");
        };
        let overlaps = |at: usize| ranges[..at].iter().any(|other| other.overlaps(ranges[at]));
        if (0..ranges.len()).any(overlaps) {
            return refused("ranges overlap");
        }
        Ok(buffers)
    }

    fn encode(&self, dispatch: &Dispatch, buffers: &[wgpu::Buffer], pass: &mut wgpu::ComputePass<'_>) {
        let mut parameters = dispatch.parameters;
        // Kernels have the same bindings; those that a kernel does not use are its first range.
        let bound = |binding: usize| {
            let range = if binding < buffers.len() { binding } else { 0 };
            let (first, len, at) = window(dispatch.ranges[range], len_of(&buffers[range]));
            parameters.at[binding] = at;
            let size = NonZero::new(len as u64 * VALUE_BYTES);
            let part = wgpu::BufferBinding { buffer: &buffers[range], offset: first as u64 * VALUE_BYTES, size };
            wgpu::BindGroupEntry { binding: binding as u32, resource: wgpu::BindingResource::Buffer(part) }
        };
        let entries: Vec<_> = (0..BINDINGS).map(bound).collect();
        let group = wgpu::BindGroupDescriptor { label: None, layout: &self.layout, entries: &entries };
        pass.set_pipeline(&self.kernels[dispatch.kernel]);
        pass.set_bind_group(0, &self.device.create_bind_group(&group), &[]);
        pass.set_immediates(0, bytemuck::bytes_of(&parameters));
        let [x, y] = dispatch.groups;
        pass.dispatch_workgroups(x, y, 1);
    }

    /// Copies a few values to the host, after all that was called before.
    fn fetch(&self, buffer: &wgpu::Buffer, from: DeviceRange) -> Result<Vec<f32>, Error> {
        let size = from.len as u64 * VALUE_BYTES;
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
        let asked = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let copy = self.device.create_buffer(&asked);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, from.start as u64 * VALUE_BYTES, &copy, 0, size);
        let submission = self.queue.submit([encoder.finish()]);
        let (mapped, is_mapped) = mpsc::channel();
        // Nobody listens any more where the download has failed.
        copy.map_async(wgpu::MapMode::Read, .., move |result| drop(mapped.send(result)));
        self.check()?;
        self.poll(wgpu::PollType::Wait { submission_index: Some(submission), timeout: None })?;
        let lost = |reason: String| Error::DeviceLost { reason };
        is_mapped.recv().map_err(|error| lost(error.to_string()))?.map_err(|error| lost(error.to_string()))?;
        let bytes = copy.get_mapped_range(..).map_err(|error| lost(error.to_string()))?;
        Ok(bytemuck::pod_collect_to_vec(&bytes[..]))
    }

    fn poll(&self, until: wgpu::PollType) -> Result<(), Error> {
        // It panics where the device is lost.
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| self.device.poll(until)));
        self.check()?;
        let lost = |reason: String| Err(Error::DeviceLost { reason });
        match polled {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => lost(error.to_string()),
            Err(panic) => lost(message(panic.as_ref())),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "its driver has failed".to_owned())
}

fn len_of(buffer: &wgpu::Buffer) -> usize {
    (buffer.size() / VALUE_BYTES) as usize
}

/// Has wgpu tell of errors instead of panicking.
fn watch(device: &wgpu::Device, fault: &Arc<Fault>) {
    let told = Arc::clone(fault);
    device.on_uncaptured_error(Arc::new(move |error| {
        told.set(Error::Gpu { problem: error.to_string() });
    }));
    let told = Arc::clone(fault);
    device.set_device_lost_callback(move |reason, message| {
        // This is also said of a device that is dropped, when nobody asks any more.
        let is_given_up = reason == wgpu::DeviceLostReason::Destroyed;
        told.set(Error::DeviceLost { reason: if is_given_up { "it was given up".to_owned() } else { message } });
    });
}

/// Compiles all kernels, for the same bindings.
fn compile(device: &wgpu::Device) -> (wgpu::BindGroupLayout, HashMap<&'static str, wgpu::ComputePipeline>) {
    let entry = |binding| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<_> = (0..BINDINGS as u32).map(entry).collect();
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
    let all = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: size_of::<Parameters>() as u32,
    });
    let mut kernels = HashMap::new();
    for (text, names) in KERNELS {
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        for &name in names {
            let kernel = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&all),
                module: &module,
                entry_point: Some(name),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            kernels.insert(name, kernel);
        }
    }
    (layout, kernels)
}

impl Device for Gpu {
    fn alloc(&self, len: usize) -> Result<DeviceRange, Error> {
        self.check()?;
        let size = padded(len) as u64 * VALUE_BYTES;
        let refused = |most: String| Err(Error::DeviceMemory { bytes: size, most });
        let most = self.device.limits().max_buffer_size;
        if size > most {
            return refused(format!("of which it gives {most} at a time"));
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let asked = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.device.create_buffer(&asked);
        if pollster::block_on(scope.pop()).is_some() {
            return refused("as its driver says".to_owned());
        }
        self.check()?;
        let mut buffers = self.buffers.write().unwrap_or_else(PoisonError::into_inner);
        buffers.push(buffer);
        Ok(DeviceRange { buffer: buffers.len() as u32 - 1, start: 0, len })
    }

    fn upload(&self, to: DeviceRange, values: &[f32]) -> Result<(), Error> {
        if values.len() != to.len {
            let problem = format!("{} values for a range of {}", values.len(), to.len);
            return Err(Error::Command { command: "upload", problem });
        }
        let buffers = self.buffers("upload", &[to])?;
        for (at, part) in values.chunks(STAGED).enumerate() {
            let mut uploading = lock(&self.uploading);
            if *uploading + part.len() > STAGED {
                self.wait()?;
                *uploading = 0;
            }
            *uploading += part.len();
            let start = (to.start + at * STAGED) as u64 * VALUE_BYTES;
            self.queue.write_buffer(&buffers[0], start, bytemuck::cast_slice(part));
        }
        self.check()
    }

    fn download(&self, from: DeviceRange) -> Result<Vec<f32>, Error> {
        let buffers = self.buffers("download", &[from])?;
        self.check()?;
        let _downloading = lock(&self.downloading);
        let mut values = Vec::with_capacity(from.len);
        while values.len() < from.len {
            let part = from.part(values.len(), STAGED.min(from.len - values.len()));
            values.extend(self.fetch(&buffers[0], part)?);
        }
        Ok(values)
    }

    fn submit(&self, commands: &[Command]) -> Result<(), Error> {
        self.check()?;
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for command in commands {
            command.check()?;
            let buffers = self.buffers(command.name(), &command.ranges())?;
            for dispatch in dispatches(command, self.limit)? {
                self.encode(&dispatch, &buffers, &mut pass);
            }
        }
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.check()
    }

    fn wait(&self) -> Result<(), Error> {
        self.check()?;
        // Uploads begin with the submit after them.
        self.queue.submit([]);
        self.poll(wgpu::PollType::wait_indefinitely())
    }

    fn staging_bytes(&self) -> u64 {
        STAGING_BYTES
    }
}
