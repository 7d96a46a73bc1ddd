#pragma once

#include "data/data_set.h"

namespace gputrain::data {

// One function per kind of data set, each in the file of its name; all.cpp lists them.
DataComponent fashion_mnist();      // idx_images.cpp
DataComponent idx();                // idx_images.cpp
DataComponent synthetic();          // synthetic.cpp
DataComponent testing_linear();     // testing_linear.cpp
DataComponent testing_sequences();  // testing_sequences.cpp

}  // namespace gputrain::data
