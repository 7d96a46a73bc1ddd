#pragma once

#include "data/data_set.h"
#include "data/idx.h"
#include "recipe/visitor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gputrain::data {

// Images and labels in IDX files, kept in the memory of the device.
struct IdxOptions {
  std::optional<std::string> train_images;  // needed
  std::optional<std::string> train_labels;  // needed
  std::optional<std::string> validation_images;
  std::optional<std::string> validation_labels;
  std::optional<std::int64_t> num_classes;
  std::optional<std::vector<double>> mean;
  std::optional<std::vector<double>> std;
};
void describe(recipe::Visitor& v, IdxOptions& o);

// Throws Error(kUsage) for options that contradict each other or the files, Error(kData) for faulty files.
DataSet build_idx(const IdxOptions& options, const DataContext& context);

struct FashionMnistOptions {
  std::optional<std::string> path;
  std::optional<std::vector<double>> mean;
  std::optional<std::vector<double>> std;
};
void describe(recipe::Visitor& v, FashionMnistOptions& o);

// The options of the idx data set for Fashion-MNIST's four files in `path`, or in `package_folder` when no
// path is given. Throws Error(kData) when a file is not there.
IdxOptions fashion_mnist_files(const FashionMnistOptions& options, const std::string& package_folder);

struct ChannelStatistics {
  std::vector<double> mean;
  std::vector<double> std;  // over all pixels; 1 for a channel in which all pixels are equal
};

// Mean and standard deviation of byte / 255, per channel.
ChannelStatistics channel_statistics(const IdxImages& images);

}  // namespace gputrain::data
