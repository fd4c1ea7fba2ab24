// SPDX-License-Identifier: Apache-2.0
// The only file that includes PMIx; in a library of its own. Checked against PMIx 4.2.
#include "fabric/pmix.hpp"

#include <pmix.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "fabric/bootstrap_connection.hpp"
#include "fabric/bootstrap_space.hpp"

namespace amasia::fabric {
namespace {

constexpr const char* kSecretKey = "amasia.secret";
constexpr const char* kBroadcastKey = "amasia.broadcast";

Error pmix_error(const char* what, pmix_status_t status) {
  return Error{fmt::format("PMIx cannot {}: {}", what, PMIx_Error_string(status)), 0};
}

pmix_proc_t process_of(const pmix_proc_t& self, pmix_rank_t rank) {
  pmix_proc_t process = self;
  process.rank = rank;
  return process;
}

pmix_status_t put_bytes(const char* key, std::span<const std::byte> bytes) {
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data()));
  value.data.bo.size = bytes.size();
  return PMIx_Put(PMIX_GLOBAL, key, &value);  // copies it
}

Result<std::vector<std::byte>> get_bytes(const pmix_proc_t& process, const char* key) {
  // After a fence that collects, the data are here: the time-out only bounds a broken server.
  int seconds = 10;
  pmix_info_t info;
  PMIX_INFO_CONSTRUCT(&info);
  PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
  pmix_value_t* value = nullptr;
  const pmix_status_t status = PMIx_Get(&process, key, &info, 1, &value);
  PMIX_INFO_DESTRUCT(&info);
  if (status != PMIX_SUCCESS) {
    return pmix_error(fmt::format("get '{}' of rank {}", key, process.rank).c_str(), status);
  }
  std::vector<std::byte> bytes;
  const bool is_bytes = value->type == PMIX_BYTE_OBJECT;
  if (is_bytes) {
    const auto* const data = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
    bytes.assign(data, data + value->data.bo.size);
  }
  PMIX_VALUE_RELEASE(value);
  if (!is_bytes) return Error{fmt::format("PMIx has no bytes under '{}'", key), 0};
  return bytes;
}

Result<std::uint32_t> get_job_size(const pmix_proc_t& self) {
  const pmix_proc_t job = process_of(self, PMIX_RANK_WILDCARD);
  pmix_value_t* value = nullptr;
  const pmix_status_t status = PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &value);
  if (status != PMIX_SUCCESS) return pmix_error("tell the size of the job", status);
  const std::uint32_t size = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
  PMIX_VALUE_RELEASE(value);
  if (size < 1 || size > base::kMaxNodes) {
    return Error{fmt::format("the PMIx job has {} processes (1 to {})", size, base::kMaxNodes), 0};
  }
  return size;
}

// A fence that all ranks reach within `timeout` (0: whenever they come); data put and committed
// before are collected.
pmix_status_t wait_at_fence(Nanos timeout) {
  bool collect = true;
  int seconds = static_cast<int>((timeout + base::kSecond - 1) / base::kSecond);
  pmix_info_t info[2];
  PMIX_INFO_CONSTRUCT(&info[0]);
  PMIX_INFO_CONSTRUCT(&info[1]);
  PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
  const pmix_status_t status = PMIx_Fence(nullptr, 0, info, timeout > 0 ? 2 : 1);
  PMIX_INFO_DESTRUCT(&info[0]);
  PMIX_INFO_DESTRUCT(&info[1]);
  return status;
}

// What a fence in progress tells the service from PMIx's own thread. The service may be gone by
// then, so it is shared.
struct FenceState {
  explicit FenceState(os::Wakeup raised) : wakeup(std::move(raised)) {}
  os::Wakeup wakeup;
  // Release by PMIx's thread, acquire by serve(): the status belongs to the fence that ended.
  std::atomic<int> status{PMIX_SUCCESS};
};

// Serves one node by asking PMIx. One thread, but for fence_ended.
class Proxy final : public BootstrapService {
 public:
  Proxy(const pmix_proc_t& self, std::uint32_t node_count, const JobSecret& secret, int socket,
        os::Wakeup wakeup)
      : self_(self),
        node_count_(node_count),
        secret_(secret),
        client_(socket),
        fence_(std::make_shared<FenceState>(std::move(wakeup))) {}

  std::vector<int> descriptors() const override {
    if (!client_.is_open()) return {};
    return {client_.descriptor(), fence_->wakeup.descriptor()};
  }
  Status serve(int descriptor) override;
  // PMIx does not tell who is missing; only this node's own absence is known.
  std::vector<NodeId> missing_from_fence() const override { return {}; }
  void fail(std::string_view sentence) override;

 private:
  Status answer(BootstrapMessage message);
  Status begin_fence();
  void end_fence();
  static void fence_ended(pmix_status_t status, void* state);

  const pmix_proc_t self_;
  const std::uint32_t node_count_;
  const JobSecret secret_;
  BootstrapConnection client_;
  std::shared_ptr<FenceState> fence_;
  bool fencing_ = false;
  std::string failure_;
};

Status Proxy::serve(int descriptor) {
  if (descriptor == fence_->wakeup.descriptor()) {
    if (fence_->wakeup.clear()) end_fence();
    return base::ok();
  }
  if (!client_.is_open() || descriptor != client_.descriptor()) return base::ok();
  return client_.receive([this](BootstrapMessage message) { return answer(std::move(message)); });
}

Status Proxy::answer(BootstrapMessage message) {
  const NodeId node(static_cast<std::uint16_t>(self_.rank));
  const std::string key = "amasia." + message.key;
  switch (message.word) {
    case BootstrapWord::kHello:
      client_.send(bootstrap_welcome(node, node_count_, secret_));
      return base::ok();
    case BootstrapWord::kPut: {
      const pmix_status_t status = put_bytes(key.c_str(), message.value);
      if (status != PMIX_SUCCESS) return pmix_error("put a value", status);
      return base::ok();
    }
    case BootstrapWord::kFence:
      return begin_fence();
    case BootstrapWord::kGet: {
      if (message.node.value >= node_count_) return Error{"no such node", 0};
      auto value = get_bytes(process_of(self_, message.node.value), key.c_str());
      if (value.ok()) {
        client_.send({BootstrapWord::kValue, message.node, 0, {}, std::move(value).value()});
      } else {
        client_.send(bootstrap_error(failure_.empty() ? value.error().message : failure_));
      }
      return base::ok();
    }
    case BootstrapWord::kMissing:
      client_.send(bootstrap_absent({}));
      return base::ok();
    default:
      return Error{fmt::format("node {} said a word that only the launcher may say ({})",
                               node.value, static_cast<int>(message.word)),
                   0};
  }
}

Status Proxy::begin_fence() {
  if (fencing_) return Error{"this node came to one fence twice", 0};
  if (!failure_.empty()) {
    client_.send(bootstrap_error(failure_));
    return base::ok();
  }
  pmix_status_t status = PMIx_Commit();
  if (status != PMIX_SUCCESS) return pmix_error("publish values", status);
  bool collect = true;
  pmix_info_t info;
  PMIX_INFO_CONSTRUCT(&info);
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  auto* const state = new std::shared_ptr<FenceState>(fence_);
  status = PMIx_Fence_nb(nullptr, 0, &info, 1, fence_ended, state);
  PMIX_INFO_DESTRUCT(&info);
  if (status != PMIX_SUCCESS) delete state;
  if (status == PMIX_SUCCESS) {
    fencing_ = true;
    return base::ok();
  }
  if (status == PMIX_OPERATION_SUCCEEDED) {  // at once: there is only this rank
    client_.send({BootstrapWord::kFenced, {}, 0, {}, {}});
    return base::ok();
  }
  return pmix_error("begin a fence", status);
}

void Proxy::fence_ended(pmix_status_t status, void* state) {
  const auto* const shared = static_cast<std::shared_ptr<FenceState>*>(state);
  // Release: pairs with the acquire in end_fence().
  (*shared)->status.store(status, std::memory_order_release);
  (*shared)->wakeup.raise();
  delete shared;
}

void Proxy::end_fence() {
  if (!fencing_) return;
  fencing_ = false;
  // Acquire: pairs with the release in fence_ended().
  const pmix_status_t status = fence_->status.load(std::memory_order_acquire);
  if (!failure_.empty()) return;  // the client has had its answer
  if (status == PMIX_SUCCESS) {
    client_.send({BootstrapWord::kFenced, {}, 0, {}, {}});
  } else {
    client_.send(bootstrap_error(pmix_error("bring all nodes to the fence", status).message));
  }
}

void Proxy::fail(std::string_view sentence) {
  failure_ = sentence;
  if (fencing_) client_.send(bootstrap_error(failure_));
}

class Membership final : public PmixMembership {
 public:
  Membership(const pmix_proc_t& self) : process_(self) {}
  ~Membership() override { PMIx_Finalize(nullptr, 0); }

  Status agree(Nanos timeout);

  NodeId self() const override { return NodeId(static_cast<std::uint16_t>(process_.rank)); }
  std::uint32_t node_count() const override { return node_count_; }
  std::unique_ptr<BootstrapService> serve(int socket) override {
    auto wakeup = os::Wakeup::make();
    AMASIA_CHECK(wakeup.ok(), "the launcher has descriptors to spare");
    return std::make_unique<Proxy>(process_, node_count_, secret_, socket,
                                   std::move(wakeup).value());
  }
  Result<std::vector<std::byte>> broadcast(std::span<const std::byte> value) override {
    return share(kBroadcastKey, value, 0);
  }
  void abort(int status, std::string_view sentence) override {
    const std::string text(sentence);
    PMIx_Abort(status, text.c_str(), nullptr, 0);
  }

 private:
  // Rank 0's value under `key`, on every rank.
  Result<std::vector<std::byte>> share(const char* key, std::span<const std::byte> value,
                                       Nanos timeout);

  const pmix_proc_t process_;
  std::uint32_t node_count_ = 0;
  JobSecret secret_;
};

Result<std::vector<std::byte>> Membership::share(const char* key, std::span<const std::byte> value,
                                                 Nanos timeout) {
  if (process_.rank == 0) {
    pmix_status_t status = put_bytes(key, value);
    if (status == PMIX_SUCCESS) status = PMIx_Commit();
    if (status != PMIX_SUCCESS) return pmix_error("publish values", status);
  }
  const pmix_status_t status = wait_at_fence(timeout);
  if (status != PMIX_SUCCESS) return pmix_error("bring all processes to a fence", status);
  return get_bytes(process_of(process_, 0), key);
}

Status Membership::agree(Nanos timeout) {
  const auto size = get_job_size(process_);
  if (!size.ok()) return size.error();
  node_count_ = size.value();
  secret_ = make_job_secret();  // rank 0's is everyone's
  const auto secret = share(kSecretKey, secret_.bytes, timeout);
  if (!secret.ok()) return secret.error();
  if (secret.value().size() != secret_.bytes.size()) {
    return Error{"rank 0 published a secret of the wrong length", 0};
  }
  std::memcpy(secret_.bytes.data(), secret.value().data(), secret_.bytes.size());
  return base::ok();
}

}  // namespace

bool started_by_pmix() {
  return std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr;
}

std::string pmix_version() { return PMIx_Get_version(); }

Result<std::unique_ptr<PmixMembership>> join_pmix(Nanos timeout) {
  pmix_proc_t self;
  const pmix_status_t status = PMIx_Init(&self, nullptr, 0);
  if (status != PMIX_SUCCESS) return pmix_error("join the job", status);
  auto membership = std::make_unique<Membership>(self);
  const auto agreed = membership->agree(timeout);
  if (!agreed.ok()) return agreed.error();
  return std::unique_ptr<PmixMembership>(std::move(membership));
}

}  // namespace amasia::fabric
