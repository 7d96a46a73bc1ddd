#include "cli/workshop.h"

#include <sys/mount.h>

// What a user can get wrong: a clear message, the right exit code, nothing lost and nothing left behind.
namespace gputrain::testing {
namespace {

// An IDX header: type byte, dimensions.
std::string idx(unsigned char rank, std::initializer_list<int> extents, const std::string& content) {
  std::string bytes = {0, 0, 8, static_cast<char>(rank)};
  for (const int extent : extents)
    bytes += {0, 0, static_cast<char>(extent >> 8), static_cast<char>(extent & 255)};
  return bytes + content;
}

std::string idx_recipe() {
  return "device: cpu\nepochs: 1\nmodel: { name: mlp }\n"
         "data: { name: idx, train_images: images, train_labels: labels, num_classes: 3 }\n";
}

// A file system of 32 KiB.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=32k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

struct IdxShop : Workshop {
  IdxShop() {
    write("idx.yaml", idx_recipe());
    write("images", idx(3, {2, 2, 3}, std::string(12, 'x')));
    write("labels", idx(1, {2}, std::string("\0\2", 2)));
  }
  Outcome run() const { return gputrain({"run", "idx.yaml"}); }
};

}  // namespace

TEST_CASE("mistakes: a mistyped key is named with its place, and nothing is written", "[cli]") {
  const Workshop shop;
  shop.write("bad.yaml", Workshop::recipe() + "epoch: 3\n");
  const auto before = shop.listing();
  for (const char* command : {"run", "check"}) {
    const Outcome outcome = shop.gputrain({command, "bad.yaml"});
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, ContainsSubstring("bad.yaml:9:1: epoch is not a key"));
    CHECK_THAT(outcome.err, ContainsSubstring("did you mean epochs?"));
  }
  CHECK(shop.listing() == before);
}

TEST_CASE("mistakes: all problems of the recipe and its components come at once, in order", "[cli]") {
  const Workshop shop;
  shop.write("bad.yaml",
             "epochs: 1\nmodel: { name: mpl }\ndata: { name: synthetic, samples: -1 }\noptimizer: { name: "
             "sgd, lr: x }\n");
  const Outcome outcome = shop.gputrain({"run", "bad.yaml"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("3 problems"));
  const auto model = outcome.err.find("bad.yaml:2:16: model.name is mpl");
  const auto data = outcome.err.find("bad.yaml:3:35: data.samples is -1");
  const auto optimizer = outcome.err.find("bad.yaml:4:29: optimizer.lr is x");
  INFO(outcome.err);
  CHECK(model < data);
  CHECK(data < optimizer);
  CHECK(optimizer != std::string::npos);
}

TEST_CASE("mistakes: a recipe that is missing, or a folder", "[cli]") {
  const Workshop shop;
  const Outcome missing = shop.gputrain({"run", "nothing.yaml"});
  CHECK(missing.exit_code == 2);
  CHECK_THAT(missing.err, ContainsSubstring("gputrain: nothing.yaml: 1 problem\n"));
  CHECK_THAT(missing.err, ContainsSubstring("No such file"));
  const Outcome folder = shop.gputrain({"run", "."});
  CHECK(folder.exit_code == 2);
  CHECK_THAT(folder.err, ContainsSubstring("folder"));
}

TEST_CASE("mistakes: a key of the recipe given as an option, and a recipe that ships given as a file",
          "[cli]") {
  const Workshop shop;
  const auto said = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = shop.gputrain(arguments);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK_THAT(said({"run", "recipe.yaml", "--epochs", "1"}), ContainsSubstring("did you mean epochs=1?"));
  CHECK_THAT(said({"run", "recipe.yaml", "--optimizer.lr=0.1"}),
             ContainsSubstring("did you mean optimizer.lr=0.1?"));
  CHECK_THAT(said({"run", "recipe.yaml", "--max-steps"}), ContainsSubstring("did you mean max_steps=VALUE?"));
  CHECK_THAT(said({}), ContainsSubstring("expected a command, as in: gputrain run recipe.yaml"));
  CHECK_THAT(said({"run", "quickstart"}),
             ContainsSubstring("the recipe quickstart ships: gputrain recipes quickstart > quickstart.yaml"));
}

TEST_CASE("mistakes: a recipe that cannot be read is told by every command, and nothing is written",
          "[cli]") {
  const Workshop shop;
  shop.write("empty.yaml", "");
  shop.write("two.yaml", "a: 1\n---\nb: 2\n");
  shop.write("space.yaml", "lr:0.1\n");
  shop.write("bytes.yaml", "a: \xff\n");
  shop.write("deep.yaml", std::string(10'000, '['));
  shop.write("large.yaml", std::string(10 << 20, '#'));
  const auto before = shop.listing();
  for (const std::string recipe : {"missing.yaml", "/", "empty.yaml", "two.yaml", "space.yaml", "bytes.yaml",
                                   "deep.yaml", "large.yaml"}) {
    for (const std::vector<std::string>& further :
         std::vector<std::vector<std::string>>{{}, {"--print"}, {"--explain", "seed"}}) {
      std::vector<std::string> command{"check", recipe};
      command.insert(command.end(), further.begin(), further.end());
      const Outcome outcome = shop.gputrain(command);
      CAPTURE(recipe, further, outcome.err);
      CHECK(outcome.exit_code == 2);
      CHECK_THAT(outcome.err, ContainsSubstring("gputrain: " + recipe + ": 1 problem\n"));
    }
    CHECK(shop.gputrain({"run", recipe}).exit_code == 2);
    CHECK(shop.gputrain({"run", recipe, "--dry-run"}).exit_code == 2);
  }
  CHECK(shop.listing() == before);
}

TEST_CASE("mistakes: an output folder that is a file, or cannot be made", "[cli]") {
  const Workshop shop;
  shop.write("taken", "something of value");
  const Outcome taken = shop.gputrain({"run", "recipe.yaml", "output_dir=taken"});
  CHECK(taken.exit_code == 6);
  CHECK_THAT(taken.err, ContainsSubstring("taken"));
  CHECK(shop.read("taken") == "something of value");
  const Outcome unwritable = shop.gputrain({"run", "recipe.yaml", "output_dir=/proc/gputrain"});
  CHECK(unwritable.exit_code == 6);
  CHECK_THAT(unwritable.err, ContainsSubstring("/proc/gputrain"));
}

TEST_CASE("mistakes: an output folder without the right to write", "[cli]") {
  const Workshop shop;
  std::filesystem::create_directory(shop.folder / "closed");
  std::filesystem::permissions(shop.folder / "closed", std::filesystem::perms::owner_read);
  if (::access((shop.folder / "closed/x").c_str(), F_OK) != 0 && errno != EACCES)
    GPUTRAIN_SKIP("root may write anywhere");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "output_dir=closed/run"});
  CHECK(outcome.exit_code == 6);
  CHECK_THAT(outcome.err, ContainsSubstring("closed/run"));
  CHECK_THAT(outcome.err, ContainsSubstring("Permission denied"));
}

TEST_CASE("mistakes: an output folder with files that are no run is left alone, also with --restart",
          "[cli]") {
  const Workshop shop;
  for (const auto& arguments :
       {std::vector<std::string>{"run", "recipe.yaml", "output_dir=."},
        std::vector<std::string>{"run", "recipe.yaml", "output_dir=.", "--restart"}}) {
    const Outcome outcome = shop.gputrain(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, ContainsSubstring("holds files, but no run"));
  }
  CHECK(shop.listing() == std::vector<std::string>{"points.txt", "recipe.yaml"});
}

TEST_CASE("mistakes: a full disk is named with the file, and no half-written weights stay", "[cli]") {
  Workshop shop;
  shop.gputrain.set("GPUTRAIN_FAULT=disk_full@file=model.safetensors");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 6);
  CHECK_THAT(outcome.err, ContainsSubstring("runs/points/model.safetensors"));
  CHECK_THAT(outcome.err, ContainsSubstring("No space left on device"));
  for (const std::string& name : shop.listing("runs/points"))
    CHECK(name.find("model.safetensors") == std::string::npos);
  CHECK_THAT(shop.read("runs/points/metrics.jsonl"), ContainsSubstring("\"step\":8"));
}

TEST_CASE("mistakes: a log that cannot be written ends the run", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "logging.trace=/dev/full"});
  CHECK(outcome.exit_code == 6);
  CHECK_THAT(outcome.err, ContainsSubstring("/dev/full"));
}

TEST_CASE("mistakes: data files that are missing, truncated, empty or wrong", "[cli]") {
  const IdxShop good;
  CHECK(good.run().exit_code == 0);

  const auto complaint = [](const std::string& file, const std::string& content) {
    const IdxShop shop;
    if (content.empty()) {
      std::filesystem::remove(shop.folder / file);
    } else {
      shop.write(file, content);
    }
    const Outcome outcome = shop.run();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 3);
    CHECK_FALSE(shop.exists("runs"));
    CHECK_THAT(outcome.err, ContainsSubstring(file));
    return outcome.err;
  };
  complaint("images", "");
  CHECK_THAT(complaint("images", std::string(1, '\0')), ContainsSubstring("truncated"));
  CHECK_THAT(complaint("images", idx(3, {2, 2, 3}, std::string(11, 'x'))), ContainsSubstring("truncated"));
  CHECK_THAT(complaint("labels", idx(1, {2}, std::string("\0\3", 2))),
             ContainsSubstring("is 3; expected 0 to 2"));
  CHECK_THAT(complaint("images", idx(3, {0, 2, 3}, "")), ContainsSubstring("no images"));
  CHECK_THAT(complaint("images", "not an IDX file at all"),
             ContainsSubstring("magic number 0x6E6F7420; expected 0x00000803"));
}

TEST_CASE("mistakes: an empty data set", "[cli]") {
  const Workshop shop;
  shop.write("points.txt", "");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml"});
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, ContainsSubstring("points.txt: has no samples"));
}

TEST_CASE("mistakes: a GPU that is not there", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "device=cuda:63"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("cuda:63"));
  CHECK_FALSE(shop.exists("runs"));
}

TEST_CASE("mistakes: settings that contradict each other", "[cli]") {
  const Workshop shop;
  const Outcome outcome =
      shop.gputrain({"run", "recipe.yaml", "optimizer.nesterov=true", "optimizer.momentum=0"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("optimizer.nesterov is true and optimizer.momentum is 0"));
  const Outcome late =
      shop.gputrain({"run", "recipe.yaml", "lr_scheduler.warmup_steps=100", "precision=tf32"});
  CHECK(late.exit_code == 0);
  CHECK_THAT(late.err,
             ContainsSubstring("the learning rate reaches only 8 % of optimizer.lr within 8 steps"));
  CHECK_THAT(late.err, ContainsSubstring("inactive on the CPU: precision: tf32"));
}

TEST_CASE("mistakes: a disk that is really full", "[cli]") {
  const Workshop shop;
  const SmallDisk disk(shop.folder / "disk");
  if (!disk.mounted()) GPUTRAIN_SKIP("mounting needs root");
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "output_dir=disk/run", "epochs=10000"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 6);
  CHECK_THAT(outcome.err, ContainsSubstring("No space left on device"));
  CHECK_THAT(outcome.err, ContainsSubstring("disk/run/"));
  const Outcome small = shop.gputrain({"run", "recipe.yaml", "output_dir=disk/big", "model.hidden=[100000]"});
  CHECK(small.exit_code == 6);
  CHECK_THAT(small.err, ContainsSubstring("the weights need 1.9 MiB, and "));
}

TEST_CASE("mistakes: files larger than the limit end the run with 6, not by a signal", "[cli]") {
  const Workshop shop;
  const Outcome outcome = shop.gputrain.with_file_limit(4096)({"run", "recipe.yaml", "epochs=1000"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 6);
  CHECK_THAT(outcome.err, ContainsSubstring("File too large"));
}

TEST_CASE("mistakes: a trace that would replace a file of the run", "[cli]") {
  const Workshop shop;
  for (const char* name : {"metrics.jsonl", "model.safetensors", "tb/x", "."}) {
    const Outcome outcome = shop.gputrain({"run", "recipe.yaml", std::string("logging.trace=") + name});
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, ContainsSubstring("a file of the run itself; choose another name"));
  }
  const Outcome taken = shop.gputrain({"run", "recipe.yaml", "logging.trace=../../points.txt"});
  CHECK(taken.exit_code == 2);
  CHECK_THAT(taken.err, ContainsSubstring("logging.trace is ../../points.txt, which exists already"));
  CHECK_FALSE(shop.exists("runs"));
}

TEST_CASE("mistakes: the last batch of an epoch has one sample and nothing to normalise over", "[cli]") {
  const Workshop shop;  // 7 samples of 1x1 px in batches of 2
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "model.name=resnet18"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("batch normalisation gets one value per channel"));
  CHECK_FALSE(shop.exists("runs"));
  const Outcome whole = shop.gputrain({"run", "recipe.yaml", "model.name=resnet18", "micro_batch_size=7",
                                       "gradient_accumulation_steps=2", "epochs=1"});
  CHECK(whole.exit_code == 0);
  CHECK_THAT(whole.err, ContainsSubstring("batch normalisation takes its statistics over each micro-batch"));
}

TEST_CASE("mistakes: the command line", "[cli]") {
  const Workshop shop;
  CHECK(shop.gputrain({}).exit_code == 2);
  const Outcome bare = shop.gputrain({"run"});
  CHECK(bare.exit_code == 2);
  CHECK_THAT(bare.err, ContainsSubstring("gputrain: recipe is required; gputrain --help"));
  const Outcome unknown = shop.gputrain({"chekc", "recipe.yaml"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("chekc is no command; expected run, check, recipes, schema, "
                                            "doctor or completion; did you mean check?"));
  CHECK(shop.gputrain({"run", "recipe.yaml", "--fast"}).exit_code == 2);
  const Outcome outcome = shop.gputrain({"run", "recipe.yaml", "optimizer.lr=-1"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err,
             ContainsSubstring("argument optimizer.lr=-1: optimizer.lr is -1; expected 0 < lr <= 1000"));
}

}  // namespace gputrain::testing
