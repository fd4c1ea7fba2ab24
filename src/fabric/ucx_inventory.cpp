// SPDX-License-Identifier: Apache-2.0
// What UCX finds on this host, asked of its transport layer. Checked against UCX 1.13.
#include "fabric/ucx_inventory.hpp"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <algorithm>

namespace amasia::fabric {
namespace {

void add_transports(uct_component_h component, const char* domain, std::vector<std::string>& out) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h opened = nullptr;
  const ucs_status_t status = uct_md_open(component, domain, config, &opened);
  uct_config_release(config);
  if (status != UCS_OK) return;
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(opened, &resources, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i) {
      if (std::find(out.begin(), out.end(), resources[i].tl_name) == out.end()) {
        out.emplace_back(resources[i].tl_name);
      }
    }
    uct_release_tl_resource_list(resources);
  }
  uct_md_close(opened);
}

}  // namespace

std::string ucx_version() { return ucp_get_version_string(); }

Result<std::vector<std::string>> ucx_transports() {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  const ucs_status_t status = uct_query_components(&components, &count);
  if (status != UCS_OK) {
    return Error{fmt::format("UCX cannot list its transports: {}", ucs_status_string(status)), 0};
  }
  std::vector<std::string> out;
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(components[i], &attributes) != UCS_OK) continue;
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (uct_component_query(components[i], &attributes) != UCS_OK) continue;
    for (const auto& domain : domains) add_transports(components[i], domain.md_name, out);
  }
  uct_release_component_list(components);
  return out;
}

}  // namespace amasia::fabric
