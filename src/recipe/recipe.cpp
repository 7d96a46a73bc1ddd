#include "recipe/recipe.h"

namespace gputrain::recipe {
namespace {

// Products of such counts, and sums of samples over a run, stay far below 2^63.
constexpr double kMostSteps = 1e12;
constexpr double kMostSamples = 1e9;

void describe(Visitor& v, Validation& o) {
  v.interval("every", o.every, "how often the model is evaluated: steps, epochs (1ep) or time (30min)");
  v.integer("micro_batch_size", o.micro_batch_size, Range{1, kMostSamples}, "samples",
            "samples per forward pass; auto: as in training");
}

void describe(Visitor& v, EarlyStopping& o) {
  v.count("patience", o.patience, Range{1, kMostSteps}, "validations",
          "validations in a row without improvement that end the run; ~: it is not ended so");
  v.number("min_delta", o.min_delta, Range{0, kNoLimit}, "", "an improvement is more than this");
  v.text("metric", o.metric,
         "what has to improve: loss by falling, a metric (accuracy, top5) by rising, with ema also ema_loss, "
         "ema_accuracy and so on; auto: the metric that best follows");
}

void describe(Visitor& v, ActivationCheckpointing& o) {
  v.one_of("mode", o.mode, {"none", "full", "selective"},
           "full: all that a block keeps but its input; selective: but also the results of convolutions and "
           "products of matrices");
  v.integer("every", o.every, Range{1, 1e6}, "blocks",
            "blocks that are computed again together: more keep less and need more at a time; auto: 1, of "
            "selective 2");
  v.texts(
      "match", o.match,
      "names of layers or blocks to compute again in place of the model's blocks, one or a list; * is any "
      "text, ? any one character");
}

void describe(Visitor& v, Ema& o) {
  v.number("decay", o.decay, Range{.min = 0, .max = 1, .max_open = true}, "per step",
           "share of the average that an update leaves as it is; 0: nothing is averaged");
  v.boolean("warmup", o.warmup, "begin with less: the decay of update t is at most (1 + t) / (10 + t)");
}

void describe(Visitor& v, LossScale& o) {
  constexpr double kLargest = 1e12;
  v.limit("fixed", o.fixed, Range{0, kLargest, true}, "", "this scale, whatever happens; ~: it adapts");
  v.number("init", o.init, Range{0, kLargest, true}, "", "scale to begin with");
  v.number("growth_factor", o.growth_factor, Range{1, 1e6, true}, "", "factor after growth_interval updates");
  v.number("backoff_factor", o.backoff_factor, Range{0, 1, true, true}, "", "factor after an overflow");
  constexpr double kMostCounted = 2147483647;  // the device counts in 32 bits
  v.integer("growth_interval", o.growth_interval, Range{1, kMostCounted}, "updates",
            "updates without overflow before the scale grows");
  v.number("min", o.min, Range{0, kLargest, true}, "", "the scale does not fall below it");
  v.number("max", o.max, Range{0, kLargest, true}, "", "the scale does not grow above it");
}

void describe(Visitor& v, Logging& o) {
  v.integer("log_every", o.log_every, Range{1, kMostSteps}, "steps", "steps between lines of progress");
  v.boolean("jsonl", o.jsonl, "write metrics.jsonl, one line per step");
  v.boolean("csv", o.csv, "write metrics.csv, one line per step");
  v.boolean("tensorboard", o.tensorboard, "write events for TensorBoard to tb/");
  v.boolean("progress", o.progress, "redraw one line of progress; auto: on a terminal");
  v.text("trace", o.trace, "file for one JSON line per micro-batch and step, relative to the run directory");
  v.integer("warmup_steps", o.warmup_steps, Range{0, kMostSteps}, "steps",
            "first steps that throughput leaves out");
}

void describe(Visitor& v, Cuda& o) {
  v.boolean("channels_last", o.channels_last, "keep images and convolution weights in NHWC; auto: yes");
  v.boolean("cudnn_benchmark", o.cudnn_benchmark,
            "time cuDNN's algorithms and take the fastest; auto: no, since that takes long and needs memory");
  v.boolean(
      "graphs", o.graphs,
      "replay forward and backward passes as CUDA graphs, for which the host takes next to no time; auto: "
      "where the GPU would wait for the host otherwise");
  v.one_of("allocator", o.allocator, {"auto", "expandable", "default"},
           "how LibTorch takes memory from the driver: in segments that grow (expandable), which waste less "
           "where sizes vary, or as LibTorch does by itself; auto: default");
  v.one_of("empty_cache", o.empty_cache, {"never", "on_oom", "before_validation", "every_step"},
           "when memory that LibTorch keeps for later is given back to the driver: each word includes those "
           "before it; every_step makes each step wait for the GPU");
}

void describe(Visitor& v, Memory& o) {
  v.bytes("limit", o.limit,
          "what this process may hold on its device as the driver sees it, with CUDA's own; on the CPU, "
          "resident memory; ~: all there is");
  v.boolean("ledger", o.ledger,
            "measure once, after the first steps, what memory is used for, and which layer keeps what for "
            "backward");
  v.boolean("snapshot", o.snapshot,
            "record what the GPU's memory is used for, and write memory/snapshot.pickle for "
            "pytorch.org/memory_viz; slows each allocation down");
}

void describe(Visitor& v, Cpu& o) {
  v.integer("threads", o.threads, Range{1, 4096}, "threads",
            "threads that compute; auto: OMP_NUM_THREADS, else at most one per core that may be used");
}

void describe_size(Visitor& v, Recipe& o) {
  v.integer("micro_batch_size", o.micro_batch_size, Range{1, kMostSamples}, "samples",
            "samples per forward pass; auto: what the other two batch numbers leave, else 32");
  v.integer("gradient_accumulation_steps", o.gradient_accumulation_steps, Range{1, kMostSamples},
            "micro-batches",
            "forward passes per update; auto: what the other two batch numbers leave, else 1");
  v.integer("global_batch_size", o.global_batch_size, Range{1, kMostSamples}, "samples",
            "samples per update; auto: micro_batch_size times gradient_accumulation_steps");
  v.count("epochs", o.epochs, Range{1, kMostSteps}, "epochs",
          "passes over the data after which the run ends");
  v.count("max_steps", o.max_steps, Range{1, kMostSteps}, "steps", "updates after which the run ends");
  v.duration("max_time", o.max_time, "time after which the run ends");
}

void describe_components(Visitor& v, Recipe& o) {
  v.component("model", o.model, "what is trained");
  v.component("data", o.data, "what it is trained on");
  v.component("objective", o.objective, "what is minimised, and what is measured");
  v.texts("freeze", o.freeze,
          "names of parameters that stay as they are, one or a list; * is any text, ? any one character");
  v.component("optimizer", o.optimizer, "how gradients change the weights");
  v.component("lr_scheduler", o.lr_scheduler, "how the learning rate changes with the steps");
}

}  // namespace

void describe(Visitor& v, Recipe& o) {
  v.text("name", o.name, "the run's name; default: the recipe file's");
  v.text("output_dir", o.output_dir,
         "run directory, relative to the working directory; default: runs/<name>");
  v.integer("seed", o.seed, Range{0, kNoLimit}, "", "where all random numbers of the run come from");
  v.device("device", o.device, "where the run computes; auto: the first GPU, else the CPU");
  v.one_of(
      "precision", o.precision,
      {"auto", "fp32", "tf32", "fp16-mixed", "bf16-mixed", "fp16-true", "bf16-true"},
      "how numbers are computed: mixed is 16 bits over float32 weights, true has weights in 16 bits; auto: "
      "bf16-mixed on a GPU from compute capability 8.0 on, fp16-mixed on an older one, fp32 on a CPU");
  v.boolean("deterministic", o.deterministic,
            "the same bits each time on the same device; what LibTorch cannot compute so is refused");
  describe_size(v, o);
  describe_components(v, o);
  v.limit("max_grad_norm", o.max_grad_norm, Range{0, kNoLimit, true}, "",
          "gradients are scaled down to this L2 norm over all parameters");
  v.limit("max_grad_value", o.max_grad_value, Range{0, kNoLimit, true}, "",
          "each element of a gradient is held between minus this and this");
  v.section("loss_scale", "what losses are multiplied by, so that small gradients do not vanish; fp16 alone",
            [&](Visitor& s) { describe(s, o.loss_scale); }, {"fixed"});
  v.section(
      "activation_checkpointing",
      "computing activations again in the backward pass in place of keeping them; a list is that of match",
      [&](Visitor& s) { describe(s, o.activation_checkpointing); }, {"mode", "match"});
  v.section("ema", "moving averages of weights and running statistics, evaluated and saved beside them",
            [&](Visitor& s) { describe(s, o.ema); }, {"decay"});
  v.one_of("on_nonfinite", o.on_nonfinite, {"skip", "stop"},
           "what a loss or gradient that is not finite does: leave out its update, or end the run");
  v.integer("max_skipped", o.max_skipped, Range{1, kMostSteps}, "updates",
            "updates left out in a row that end the run");
  v.section("validation", "evaluation during training", [&](Visitor& s) { describe(s, o.validation); });
  v.section("early_stopping", "ends the run when validations get no better",
            [&](Visitor& s) { describe(s, o.early_stopping); }, {"patience"});
  v.section("logging", "what is written while training", [&](Visitor& s) { describe(s, o.logging); });
  v.section("memory", "memory of the device", [&](Visitor& s) { describe(s, o.memory); });
  v.section("cuda", "settings of the GPU", [&](Visitor& s) { describe(s, o.cuda); });
  v.section("cpu", "settings of the CPU", [&](Visitor& s) { describe(s, o.cpu); });
}

}  // namespace gputrain::recipe
