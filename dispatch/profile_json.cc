// Profiles as JSON, in files, and the built-in one, which is a JSON file compiled in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "dispatch/builtin_profiles.h"
#include "dispatch/files.h"
#include "dispatch/no_memory.h"
#include "tepal/profile.h"
#include "tepal/targets.h"

namespace tepal {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "tepal-profile";
constexpr int kVersion = 1;
constexpr size_t kMaxFileBytes = 1 << 20;

Status Wrong(const std::string& what) { return Status::Corrupt("profile: " + what); }

// What is wrong with a text, said by somebody who took it for an argument.
Status Wrong(const Status& status, const std::string& where = "") {
  if (status.code() == StatusCode::kOutOfMemory) return status;
  return Status::Corrupt(where + status.message());
}

const char* OperationName(Operation operation) {
  return operation == Operation::kProbe ? "probe" : "insert";
}

// A JSON value. Not nlohmann::json: its destructor allocates for lists and objects, and ends the
// process if it cannot.
struct Value;
using List = std::vector<Value>;
struct Object {
  List members;
};
struct Value {
  std::string name = {};  // if it is a member
  std::variant<std::monostate, std::string, uint64_t, double, List, Object> content = {};
};

// Makes a Value of what nlohmann's parser finds. Every function says whether to go on.
class ValueMaker final : public Json::json_sax_t {
 public:
  explicit ValueMaker(Value* root) : root_(root) {}

  bool null() override { return Add(std::monostate()); }
  bool boolean(bool) override { return Add(std::monostate()); }  // profiles have none
  bool number_integer(int64_t value) override { return Add(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // not in JSON
  bool key(std::string& name) override {
    name_ = std::move(name);
    return true;
  }
  bool start_object(size_t) override { return Open(Object()); }
  bool start_array(size_t) override { return Open(List()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  // A profile has four levels: itself, curves, a curve, ns. A limit because destructors recurse.
  static constexpr size_t kMaxLevels = 8;

  // Where the next value goes. Pointers to open values stay good: only the innermost one grows.
  Value& Next() {
    if (open_.empty()) return *root_;
    if (List* list = std::get_if<List>(&open_.back()->content)) return list->emplace_back();
    Value& member = std::get<Object>(open_.back()->content).members.emplace_back();
    member.name = std::move(name_);
    return member;
  }

  template <class Content>
  bool Add(Content&& content) {
    Next().content = std::forward<Content>(content);
    return true;
  }

  template <class Content>
  bool Open(Content&& content) {
    if (open_.size() == kMaxLevels) return false;
    Value& value = Next();
    value.content = std::forward<Content>(content);
    open_.push_back(&value);
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  Value* root_;
  std::vector<Value*> open_;
  std::string name_;
};

// The last one of this name, or null.
const Value* Member(const Value& value, std::string_view name) {
  const auto* object = std::get_if<Object>(&value.content);
  if (object == nullptr) return nullptr;
  const auto found = std::find_if(object->members.rbegin(), object->members.rend(),
                                  [&](const Value& member) { return member.name == name; });
  return found == object->members.rend() ? nullptr : &*found;
}

// Each reads a value into `*out` and returns true, or returns false if it is not of this type.
template <class T>
bool Read(const Value* value, T* out) {
  const T* content = value == nullptr ? nullptr : std::get_if<T>(&value->content);
  if (content != nullptr) *out = *content;
  return content != nullptr;
}

bool Read(const Value* value, double* out) {
  uint64_t whole = 0;
  if (!Read(value, &whole)) return Read<double>(value, out);
  *out = static_cast<double>(whole);
  return true;
}

template <class T>
bool Read(const Value* value, std::vector<T>* out) {
  const List* list = value == nullptr ? nullptr : std::get_if<List>(&value->content);
  if (list == nullptr) return false;
  out->resize(list->size());
  for (size_t i = 0; i < out->size(); ++i) {
    if (!Read(&(*list)[i], &(*out)[i])) return false;
  }
  return true;
}

Result<TimeCurve> ReadCurve(const Value& json, size_t index) {
  const std::string where = "curves[" + std::to_string(index) + "]";
  TimeCurve curve;
  std::string layout;
  std::string operation;
  if (!Read(Member(json, "layout"), &layout) || !Read(Member(json, "operation"), &operation) ||
      !Read(Member(json, "bits_per_key_touched"), &curve.bits_per_key_touched) ||
      !Read(Member(json, "ns"), &curve.ns)) {
    return Wrong(where +
                 " needs layout and operation (strings), bits_per_key_touched (a number) "
                 "and ns (a list of numbers)");
  }
  Result<Layout> parsed = ParseLayout(layout);
  if (!parsed.ok()) return Wrong(parsed.status(), "profile: " + where + ": ");
  curve.layout = *parsed;
  if (operation != "probe" && operation != "insert") {
    return Wrong(where + ": operation is \"" + operation + "\", but must be probe or insert");
  }
  curve.operation = operation == "probe" ? Operation::kProbe : Operation::kInsert;
  return curve;
}

Status ReadHeader(const Value& json, MachineProfile* profile) {
  std::string format;
  uint64_t version = 0;
  if (!Read(Member(json, "format"), &format) || format != kFormat) {
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

// Only for texts and numbers: see Value.
template <class T>
std::string ToText(const T& value) {
  return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
std::string ToText(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) text += (&value == values.data() ? "" : ",") + ToText(value);
  return text + "]";
}

// One line per curve, so that a person can read it, and a change shows.
std::string CurveLine(const TimeCurve& curve) {
  return "{\"layout\":" + ToText(LayoutName(curve.layout)) +
         ",\"operation\":" + ToText(OperationName(curve.operation)) +
         ",\"bits_per_key_touched\":" + ToText(curve.bits_per_key_touched) +
         ",\"ns\":" + ToText(curve.ns) + "}";
}

Status CannotUse(const std::string& path, const std::string& why) {
  return Status::IoError("profile " + path + ": " + why);
}

}  // namespace

Result<MachineProfile> MachineProfile::FromJson(std::string_view text) try {
  Value json;
  ValueMaker maker(&json);
  if (!Json::sax_parse(text, &maker)) return Wrong("not JSON, or nested too deeply");
  MachineProfile profile;
  if (Status status = ReadHeader(json, &profile); !status.ok()) return status;
  const Value* curves = Member(json, "curves");
  const List* list = curves == nullptr ? nullptr : std::get_if<List>(&curves->content);
  if (list == nullptr) return Wrong("curves must be a list");
  for (size_t i = 0; i < list->size(); ++i) {
    Result<TimeCurve> curve = ReadCurve((*list)[i], i);
    if (!curve.ok()) return curve.status();
    profile.curves.push_back(std::move(*curve));
  }
  if (Status status = profile.Validate(); !status.ok()) return Wrong(status);
  return profile;
} catch (const std::exception&) {
  return NoMemory();
}

std::string MachineProfile::ToJson() const {
  std::string text = "{";
  const auto add = [&](const char* member, const std::string& value) {
    text += (text.size() == 1 ? "\n \"" : ",\n \"") + std::string(member) + "\": " + value;
  };
  add("format", ToText(kFormat));
  add("version", ToText(kVersion));
  add("cpu", ToText(cpu));
  add("target", ToText(target));
  add("l1_bytes", ToText(l1_bytes));
  add("l2_bytes", ToText(l2_bytes));
  add("l3_bytes", ToText(l3_bytes));
  add("filter_bytes", ToText(filter_bytes));
  add("curves", "[");
  for (const TimeCurve& curve : curves) {
    text += (&curve == curves.data() ? "\n  " : ",\n  ") + CurveLine(curve);
  }
  return text + "\n ]\n}\n";
}

Result<MachineProfile> MachineProfile::Load(const std::string& path) try {
  const Result<std::string> text = ReadFile(path, kMaxFileBytes + 1);
  if (!text.ok()) return text.status();
  if (text->size() > kMaxFileBytes) return Wrong(path + " is too large to be one");
  Result<MachineProfile> profile = FromJson(*text);
  if (!profile.ok())
    return Status(profile.status().code(), path + ": " + profile.status().message());
  profile->name = path;
  return profile;
} catch (const std::exception&) {
  return NoMemory();
}

Status MachineProfile::Save(const std::string& path) const try {
  if (Status status = Validate(); !status.ok()) return status;
  if (Status status = CheckPath(path); !status.ok()) return status;
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
  if (path.empty() || !std::filesystem::exists(path, error)) return BuiltIn(target);
  Result<MachineProfile> profile = Load(path);
  if (profile.ok() && profile->target == target) return std::move(*profile);
  if (profile.status().code() == StatusCode::kOutOfMemory) throw std::bad_alloc();
  MachineProfile built_in = BuiltIn(target);
  built_in.name += profile.ok() ? " (" + path + " is for another target, " + profile->target + ")"
                                : " (" + profile.status().message() + ")";
  return built_in;
}

const MachineProfile& MachineProfile::BuiltIn(std::string_view target) {
  // profile_test.cc: they are valid. Without memory, the next call tries again.
  const auto read = [](const char* json) {
    Result<MachineProfile> profile = FromJson(json);
    if (!profile.ok()) throw std::bad_alloc();
    profile->name = "built-in";
    return std::move(*profile);
  };
  if (target.starts_with("AVX3") || target.starts_with("AVX10")) {  // Highway's names for AVX-512
    static const MachineProfile kAvx512 = read(kAvx512ProfileJson);
    return kAvx512;
  }
  static const MachineProfile kAvx2 = read(kAvx2ProfileJson);
  return kAvx2;
}

}  // namespace tepal
