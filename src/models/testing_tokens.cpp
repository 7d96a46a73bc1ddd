#include "base/error.h"
#include "models/components.h"
#include "nn/layers.h"
#include "nn/recompute.h"

#include <ATen/ops/relu.h>

namespace gputrain::models {
namespace {

struct TestingTokensOptions {
  std::int64_t width = 32;
  std::vector<std::int64_t> hidden = {32};
  std::optional<std::int64_t> vocab_size;
};

void describe(recipe::Visitor& v, TestingTokensOptions& o) {
  v.integer("width", o.width, {1, 1e6}, "units", "values a token is turned into");
  v.integers("hidden", o.hidden, {1, 1e6}, "units", "width of each hidden layer; [] is none");
  v.integer("vocab_size", o.vocab_size, {2, 1e9}, "tokens", "tokens it knows; auto: the data's");
}

std::int64_t vocabulary(const TestingTokensOptions& options, const ModelContext& context) {
  if (context.sample_shape.size() != 1) {
    throw SettingError("model.name",
                       "reads tokens, the data has images; expected data of sequences, or a model "
                       "that reads images");
  }
  if (options.vocab_size && *options.vocab_size < context.num_classes) {
    throw SettingError("model.vocab_size",
                       concat("is ", *options.vocab_size, ", the data has tokens up to ",
                              context.num_classes - 1, "; write auto or at least ", context.num_classes));
  }
  return options.vocab_size.value_or(context.num_classes);
}

// The same small network at each position: what one of them gives does not depend on its neighbours.
// Parameters: embedding.weight, layers.0.weight, layers.0.bias ..., the last of them the head.
class TestingTokens : public nn::Module {
 public:
  TestingTokens(const TestingTokensOptions& options, const ModelContext& context) {
    const std::int64_t tokens = vocabulary(options, context);
    embedding_ = &add("embedding", std::make_unique<nn::Embedding>(tokens, options.width, context.init));
    auto layers = std::make_unique<nn::Group>();
    std::int64_t width = options.width;
    for (const std::int64_t next : options.hidden) {
      nn::Module& layer = layers->push(std::make_unique<nn::Linear>(width, next, context.init));
      hidden_.add("layers." + std::to_string(hidden_.size()),
                  [&layer](const at::Tensor& x) { return at::relu(layer(x)); });
      width = next;
    }
    head_ = &layers->push(std::make_unique<nn::Linear>(width, tokens, context.init));
    add("layers", std::move(layers));
  }

  nn::Blocks* blocks() override { return &hidden_; }

 protected:
  at::Tensor forward(const at::Tensor& input) override {
    return (*head_)(hidden_((*embedding_)(input)));  // [batch, positions, width] between them
  }

 private:
  nn::Embedding* embedding_;
  nn::Blocks hidden_;
  nn::Module* head_;
};

Model build(const TestingTokensOptions& options, const ModelContext& context) {
  return std::make_unique<TestingTokens>(options, context);
}

}  // namespace

ModelComponent testing_tokens() {
  return recipe::component("testing.tokens", "logits for each position from its token alone, for tests",
                           build);
}

}  // namespace gputrain::models
