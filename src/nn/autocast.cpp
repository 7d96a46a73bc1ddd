// LibTorch declares autocast's switches in a header that includes all operators; only this file sees it.
#undef TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include "nn/precision.h"

#include <ATen/autocast_mode.h>

namespace gputrain::nn {

Autocast::Autocast(at::DeviceType device, std::optional<at::ScalarType> type)
    : device_(device), was_enabled_(at::autocast::is_autocast_enabled(device)) {
  if (!type && !was_enabled_) return;
  active_ = true;
  type_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, type.has_value());
  if (type) at::autocast::set_autocast_dtype(device_, *type);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_enabled(device_, was_enabled_);
}

std::optional<at::ScalarType> autocast_type(at::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return {};
  return at::autocast::get_autocast_dtype(device);
}

}  // namespace gputrain::nn
