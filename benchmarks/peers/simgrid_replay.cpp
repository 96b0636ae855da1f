// Replays a work in SimGrid: simgrid_replay WORK_FILE mailboxes|direct
//
// Plain max-min sharing: model CM02 without cross traffic, without a window, with factors of 1. An actor on each host
// puts and gets the messages of a round together, through a mailbox for each pair of hosts, and waits for all of them.
// A work whose receivers fetch can also be sent directly, without mailboxes and without an actor at the sender: that is
// three times as fast for 20,480 random messages. (An all-to-all of 256 would be 17 times as slow.)
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include "work_file.hpp"

namespace sg4 = simgrid::s4u;

static std::vector<sg4::Host*> build(const WorkFile& work) {
  auto* zone = sg4::create_full_zone("net");
  std::vector<sg4::Host*> hosts;
  for (int32_t i = 0; i < work.n_hosts; i++)
    hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9));
  std::vector<sg4::Link*> links;
  for (size_t i = 0; i < work.bandwidth.size(); i++)
    links.push_back(zone->create_link("l" + std::to_string(i), work.bandwidth[i])->set_latency(work.latency[i])->seal());
  for (size_t r = 0; r < work.route_src.size(); r++) {
    std::vector<sg4::LinkInRoute> path;
    for (int32_t i = work.route_first[r]; i < work.route_first[r + 1]; i++)
      path.emplace_back(links[work.route_link[i]]);
    zone->add_route(hosts[work.route_src[r]]->get_netpoint(), hosts[work.route_dst[r]]->get_netpoint(), nullptr, nullptr,
                    path, false);
  }
  zone->seal();
  return hosts;
}

static std::vector<sg4::Mailbox*> mailboxes(const WorkFile& work) {
  std::vector<sg4::Mailbox*> boxes;
  for (size_t r = 0; r < work.route_src.size(); r++)
    boxes.push_back(sg4::Mailbox::by_name(std::to_string(r)));
  return boxes;
}

static void play_direct(const WorkFile& work, const std::vector<sg4::Host*>& hosts, int32_t host) {
  for (int32_t message : work.receives[host])
    sg4::Comm::sendto(hosts[work.source(message)], hosts[host], work.bytes[message]);
}

static void play(const WorkFile& work, const std::vector<sg4::Mailbox*>& boxes, int32_t host) {
  static int payload;
  const auto &sends = work.sends[host], &receives = work.receives[host];
  size_t put = 0, got = 0;
  if (work.fetched)
    for (; put < sends.size(); put++)
      boxes[work.route[sends[put]]]->put_init(&payload, work.bytes[sends[put]])->detach();
  std::vector<sg4::CommPtr> waiting;
  std::vector<int*> buffers(receives.size());
  for (int32_t round = 0; round < work.n_rounds; round++) {
    waiting.clear();
    for (; put < sends.size() && work.round[sends[put]] == round; put++)
      waiting.push_back(boxes[work.route[sends[put]]]->put_async(&payload, work.bytes[sends[put]]));
    for (; got < receives.size() && work.round[receives[got]] == round; got++)
      waiting.push_back(boxes[work.route[receives[got]]]->get_async<int>(&buffers[got]));
    for (auto& message : waiting)
      message->wait();
  }
}

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: simgrid_replay WORK_FILE mailboxes|direct\n");
    return 2;
  }
  for (const char* option : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                             "network/bandwidth-factor:1", "network/latency-factor:1",
                             "surf/precision:1e-12"})  // by default, what is less than a nanosecond apart is one
    sg4::Engine::set_config(option);
  WorkFile work(argv[1]);
  bool direct = std::strcmp(argv[2], "direct") == 0;
  auto hosts = build(work);
  auto boxes = direct ? std::vector<sg4::Mailbox*>() : mailboxes(work);
  double begin = cpu_seconds();
  for (int32_t i = 0; i < work.n_hosts; i++)
    sg4::Actor::create("rank", hosts[i], [&work, &hosts, &boxes, direct, i] {
      direct ? play_direct(work, hosts, i) : play(work, boxes, i);
    });
  engine.run();
  say(std::to_string(SIMGRID_VERSION_MAJOR) + "." + std::to_string(SIMGRID_VERSION_MINOR), sg4::Engine::get_clock(),
      cpu_seconds() - begin);
  return 0;
}
