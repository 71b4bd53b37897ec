// Classifies handwritten digits with a compiled model: the C interface from C++17, one session a thread.
//
//     c++ -std=c++17 examples/classify.cpp digits.so -Iinclude -Wl,-rpath,'$ORIGIN' -pthread -o classify
//     ./classify models/digits/test_images.npy models/digits/test_labels.npy
//
// (or digits.a instead of digits.so)
#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <o3/model.h>

constexpr std::size_t kPixels = 8 * 8, kClasses = 10;

struct SessionDeleter {
  void operator()(o3_session_t *session) const { o3_session_destroy(session); }
};
using Session = std::unique_ptr<o3_session_t, SessionDeleter>;

// The bytes of a .npy file of uint8, version 1.0: the header's length stands at byte 8.
static std::vector<std::uint8_t> read_npy(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  std::string start(bytes.begin(), bytes.begin() + std::min<std::size_t>(bytes.size(), 128));
  if (start.compare(0, 7, "\x93NUMPY\x01") != 0 || start.find("'|u1'") == std::string::npos)
    throw std::runtime_error(path + " is no .npy 1.0 file of uint8");
  std::size_t data = 10 + bytes[8] + 256u * bytes[9];
  if (data > bytes.size()) throw std::runtime_error(path + " ends too early");
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(data));
  return bytes;
}

static std::size_t count_right(std::vector<float> pixels, const std::uint8_t *labels) {
  o3_session_options_t options{};
  options.threads = 1;  // this thread alone
  o3_session_t *created = nullptr;
  if (o3_session_create(o3_model(), &options, &created) != O3_OK)
    throw std::runtime_error(o3_last_error(o3_model()));
  Session session(created);
  std::size_t batch = pixels.size() / kPixels, right = 0;
  std::vector<float> logits(batch * kClasses);
  const auto size = static_cast<std::int64_t>(batch);
  const o3_tensor_t image{pixels.data(), O3_FLOAT32, 4, {size, 1, 8, 8}, O3_HOST};
  o3_tensor_t output{logits.data(), O3_FLOAT32, 2, {size, kClasses}, O3_HOST};  // filled in place
  if (o3_session_run(session.get(), &image, 1, &output, 1) != O3_OK)
    throw std::runtime_error(o3_session_error(session.get()));
  for (std::size_t i = 0; i < batch; ++i) {
    auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * kClasses);
    right += std::max_element(row, row + kClasses) - row == labels[i];
  }
  return right;
}

int main(int argc, char **argv) try {
  if (argc != 3) throw std::runtime_error("usage: classify IMAGES.npy LABELS.npy");
  const auto images = read_npy(argv[1]), labels = read_npy(argv[2]);
  if (images.size() != labels.size() * kPixels)
    throw std::runtime_error("images and labels differ in number");
  const std::size_t half = labels.size() / 2;
  const auto middle = images.begin() + static_cast<std::ptrdiff_t>(half * kPixels);
  auto first =
      std::async(std::launch::async, count_right, std::vector<float>(images.begin(), middle), labels.data());
  std::size_t right = count_right({middle, images.end()}, labels.data() + half);
  std::cout << right + first.get() << " of " << labels.size() << " right\n";
} catch (const std::exception &error) {
  std::cerr << "classify: " << error.what() << '\n';
  return 1;
}
