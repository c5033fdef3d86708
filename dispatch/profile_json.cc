// Profiles as JSON, in files, and the built-in one, which is a JSON file compiled in.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "dispatch/builtin_profile.h"
#include "dispatch/files.h"
#include "dispatch/no_memory.h"
#include "tepal/profile.h"
#include "tepal/targets.h"

namespace tepal {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "tepal-profile";
constexpr int kVersion = 1;
constexpr std::uintmax_t kMaxFileBytes = 1 << 20;

Status Wrong(const std::string& what) { return Status::Corrupt("profile: " + what); }

const char* OperationName(Operation operation) {
  return operation == Operation::kProbe ? "probe" : "insert";
}

// Each reads a member into `*out` and returns true, or leaves it and returns false. None throws.
const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

bool Read(const Json* value, std::string* out) {
  if (value == nullptr || !value->is_string()) return false;
  *out = *value->get_ptr<const std::string*>();
  return true;
}

bool Read(const Json* value, uint64_t* out) {
  if (value == nullptr || !value->is_number_unsigned()) return false;
  *out = value->get<uint64_t>();
  return true;
}

bool Read(const Json* value, double* out) {
  if (value == nullptr || !value->is_number()) return false;
  *out = value->get<double>();
  return true;
}

template <typename T>
bool Read(const Json* value, std::vector<T>* out) {
  if (value == nullptr || !value->is_array()) return false;
  out->resize(value->size());
  for (size_t i = 0; i < out->size(); ++i) {
    if (!Read(&(*value)[i], &(*out)[i])) return false;
  }
  return true;
}

Result<TimeCurve> ReadCurve(const Json& json, size_t index) {
  const std::string where = "curves[" + std::to_string(index) + "]";
  TimeCurve curve;
  std::string layout;
  std::string operation;
  if (!json.is_object() || !Read(Member(json, "layout"), &layout) ||
      !Read(Member(json, "operation"), &operation) ||
      !Read(Member(json, "bits_per_key_touched"), &curve.bits_per_key_touched) ||
      !Read(Member(json, "ns"), &curve.ns)) {
    return Wrong(where +
                 " needs layout and operation (strings), bits_per_key_touched (a number) "
                 "and ns (a list of numbers)");
  }
  Result<Layout> parsed = ParseLayout(layout);
  if (!parsed.ok()) return Wrong(where + ": " + parsed.status().message());
  curve.layout = *parsed;
  if (operation != "probe" && operation != "insert") {
    return Wrong(where + ": operation is \"" + operation + "\", but must be probe or insert");
  }
  curve.operation = operation == "probe" ? Operation::kProbe : Operation::kInsert;
  return curve;
}

Status ReadHeader(const Json& json, MachineProfile* profile) {
  std::string format;
  uint64_t version = 0;
  if (!json.is_object() || !Read(Member(json, "format"), &format) || format != kFormat) {
    return Wrong("not one: \"format\" must be \"" + std::string(kFormat) + "\"");
  }
  if (!Read(Member(json, "version"), &version) || version != kVersion) {
    return Wrong("\"version\" must be " + std::to_string(kVersion) + "; please calibrate again");
  }
  for (const auto& [name, text] : {std::pair{"cpu", &profile->cpu}, {"target", &profile->target}}) {
    if (!Read(Member(json, name), text)) return Wrong(std::string(name) + " must be a string");
  }
  for (const auto& [name, bytes] : {std::pair{"l1_bytes", &profile->l1_bytes},
                                    {"l2_bytes", &profile->l2_bytes},
                                    {"l3_bytes", &profile->l3_bytes}}) {
    if (!Read(Member(json, name), bytes))
      return Wrong(std::string(name) + " must be a number of bytes");
  }
  if (!Read(Member(json, "filter_bytes"), &profile->filter_bytes)) {
    return Wrong("filter_bytes must be a list of numbers of bytes");
  }
  return Status::Ok();
}

// One line per curve, so that a person can read it, and a change shows.
std::string CurveLine(const TimeCurve& curve) {
  nlohmann::ordered_json json;
  json["layout"] = LayoutName(curve.layout);
  json["operation"] = OperationName(curve.operation);
  json["bits_per_key_touched"] = curve.bits_per_key_touched;
  json["ns"] = curve.ns;
  return json.dump();
}

Status CannotUse(const std::string& path, const std::string& why) {
  return Status::IoError("profile " + path + ": " + why);
}

}  // namespace

Result<MachineProfile> MachineProfile::FromJson(std::string_view text) try {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Wrong("not JSON");
  MachineProfile profile;
  if (Status status = ReadHeader(json, &profile); !status.ok()) return status;
  const Json* curves = Member(json, "curves");
  if (curves == nullptr || !curves->is_array()) return Wrong("curves must be a list");
  for (size_t i = 0; i < curves->size(); ++i) {
    Result<TimeCurve> curve = ReadCurve((*curves)[i], i);
    if (!curve.ok()) return curve.status();
    profile.curves.push_back(std::move(*curve));
  }
  if (Status status = profile.Validate(); !status.ok()) return Status::Corrupt(status.message());
  return profile;
} catch (const std::exception&) {
  return NoMemory();
}

std::string MachineProfile::ToJson() const {
  nlohmann::ordered_json head;
  head["format"] = kFormat;
  head["version"] = kVersion;
  head["cpu"] = cpu;
  head["target"] = target;
  head["l1_bytes"] = l1_bytes;
  head["l2_bytes"] = l2_bytes;
  head["l3_bytes"] = l3_bytes;
  std::string text = head.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // reopen it: "\n}"
  text += ",\n \"filter_bytes\": " + Json(filter_bytes).dump() + ",\n \"curves\": [";
  for (const TimeCurve& curve : curves) {
    text += (&curve == curves.data() ? "\n  " : ",\n  ") + CurveLine(curve);
  }
  return text + "\n ]\n}\n";
}

Result<MachineProfile> MachineProfile::Load(const std::string& path) try {
  std::error_code error;
  const std::uintmax_t file_bytes = std::filesystem::file_size(path, error);
  if (error) return CannotUse(path, error.message());
  if (file_bytes > kMaxFileBytes) return Wrong(path + " is too large to be one");
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.size() != file_bytes) return CannotUse(path, "cannot be read");
  Result<MachineProfile> profile = FromJson(text);
  if (!profile.ok())
    return Status(profile.status().code(), path + ": " + profile.status().message());
  profile->name = path;
  return profile;
} catch (const std::exception&) {
  return NoMemory();
}

Status MachineProfile::Save(const std::string& path) const try {
  if (Status status = Validate(); !status.ok()) return status;
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!directory.empty()) std::filesystem::create_directories(directory, error);
  if (error) return CannotUse(directory.string(), error.message());
  const std::string json = ToJson();
  return ReplaceFile(path, {{reinterpret_cast<const uint8_t*>(json.data()), json.size()}});
} catch (const std::exception&) {
  return NoMemory();
}

std::string MachineProfile::DefaultPath(std::string_view target) {
  const auto in = [&](const char* variable, const char* below) {
    const char* directory = std::getenv(variable);
    if (directory == nullptr || *directory == '\0') return std::string();
    return std::string(directory) + below + "/tepal/profile-" + std::string(target) + ".json";
  };
  const std::string path = in("XDG_CACHE_HOME", "");
  return path.empty() ? in("HOME", "/.cache") : path;
}

MachineProfile MachineProfile::ForThisMachine() {
  const std::string target = ActiveTarget();
  const std::string path = DefaultPath(target);
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return BuiltIn();
  Result<MachineProfile> profile = Load(path);
  if (profile.ok() && profile->target == target) return std::move(*profile);
  MachineProfile built_in = BuiltIn();
  built_in.name += profile.ok() ? " (" + path + " is for another target, " + profile->target + ")"
                                : " (" + profile.status().message() + ")";
  return built_in;
}

const MachineProfile& MachineProfile::BuiltIn() {
  static const MachineProfile kProfile = [] {
    // profile_test.cc: it is valid. Without memory, the next call tries again.
    Result<MachineProfile> profile = FromJson(kBuiltInProfileJson);
    if (!profile.ok()) throw std::bad_alloc();
    profile->name = "built-in";
    return std::move(*profile);
  }();
  return kProfile;
}

}  // namespace tepal
