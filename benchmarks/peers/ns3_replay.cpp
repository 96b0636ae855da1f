// Replays a work in ns-3, packet by packet: ns3_replay WORK_FILE
//
// Cables are point-to-point links. A TCP connection for each pair of hosts that talk is opened in the first simulated
// second, and the work starts after it. Segments are of 4096 bytes, and neither windows nor queues ever stop a sender:
// what is left of TCP is its headers and acknowledgements. Routes are ns-3's own shortest paths.
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>
#include <ns3/version-defines.h>

#include <deque>

#include "work_file.hpp"

using namespace ns3;

static const uint32_t SEGMENT = 4096, HEADERS = 52, PORT = 10000, ROOM = 1u << 30;
static const double BEGIN = 1.0;

class Replay {
public:
  explicit Replay(const char* path)
      : work(path), coming(work.route_src.size()), place(work.n_hosts, 0), next(work.n_hosts, 0),
        missing(work.n_hosts, std::vector<int32_t>(work.n_rounds, 0)),
        sender(work.route_src.size()), listener(work.route_src.size()) {
    for (size_t m = 0; m < work.bytes.size(); m++)
      missing[work.source(m)][work.round[m]]++, missing[work.target(m)][work.round[m]]++;
    build();
    for (size_t r = 0; r < work.route_src.size(); r++)
      Simulator::Schedule(Seconds(BEGIN / 2), &Replay::connect, this, r);
    for (int32_t host = 0; host < work.n_hosts; host++)
      Simulator::Schedule(Seconds(BEGIN), &Replay::advance, this, host);
  }

  double last = BEGIN;  // when the last message was complete, s
  size_t n_complete = 0;
  WorkFile work;

private:
  struct Coming { int32_t message; double missing; };  // bytes that are not there yet
  std::vector<std::deque<Coming>> coming;              // on each route
  std::vector<int32_t> place;              // round of each host
  std::vector<size_t> next;                // of its messages to send
  std::vector<std::vector<int32_t>> missing;  // of each host and round: messages that are not complete
  NodeContainer nodes;
  std::vector<Ipv4Address> address;
  std::vector<Ptr<Socket>> sender, listener;

  void build() {
    nodes.Create(work.n_nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    address.resize(work.n_nodes);
    for (size_t i = 0; i < work.bandwidth.size() / 2; i++, addresses.NewNetwork()) {
      PointToPointHelper cable;
      cable.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(8 * work.bandwidth[i]))));
      cable.SetDeviceAttribute("Mtu", UintegerValue(SEGMENT + HEADERS));
      cable.SetChannelAttribute("Delay", TimeValue(Seconds(work.latency[i])));
      cable.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
      auto ends = cable.Install(nodes.Get(work.link_src[i]), nodes.Get(work.link_dst[i]));
      auto given = addresses.Assign(ends);
      TrafficControlHelper().Uninstall(ends);
      address[work.link_src[i]] = given.GetAddress(0), address[work.link_dst[i]] = given.GetAddress(1);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  }

  void connect(size_t route) {
    auto server = Socket::CreateSocket(nodes.Get(work.route_dst[route]), TcpSocketFactory::GetTypeId());
    server->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT + route));
    server->Listen();
    Callback<void, Ptr<Socket>> arrives([this, route](Ptr<Socket> socket) { read(route, socket); });
    server->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                              Callback<void, Ptr<Socket>, const Address&>(
                                  [arrives](Ptr<Socket> accepted, const Address&) { accepted->SetRecvCallback(arrives); }));
    auto client = Socket::CreateSocket(nodes.Get(work.route_src[route]), TcpSocketFactory::GetTypeId());
    client->Bind();
    client->Connect(InetSocketAddress(address[work.route_dst[route]], PORT + route));
    listener[route] = server, sender[route] = client;
  }

  void advance(int32_t host) {
    const auto& sends = work.sends[host];
    while (place[host] < work.n_rounds) {
      for (; next[host] < sends.size() && work.round[sends[next[host]]] == place[host]; next[host]++) {
        int32_t message = sends[next[host]];
        coming[work.route[message]].push_back({message, work.bytes[message]});
        sender[work.route[message]]->Send(Create<Packet>(static_cast<uint32_t>(work.bytes[message])));
      }
      if (missing[host][place[host]] > 0)
        return;
      place[host]++;
    }
  }

  void read(size_t route, Ptr<Socket> socket) {
    double n_bytes = 0;
    while (auto packet = socket->Recv())
      n_bytes += packet->GetSize();
    for (auto& queue = coming[route]; n_bytes > 0;) {
      Coming& first = queue.front();
      double taken = std::min(n_bytes, first.missing);
      n_bytes -= taken, first.missing -= taken;
      if (first.missing > 0)
        continue;
      int32_t message = first.message;
      queue.pop_front();
      complete(message);
    }
  }

  void complete(int32_t message) {
    last = Simulator::Now().GetSeconds(), n_complete++;
    for (int32_t host : {work.source(message), work.target(message)}) {
      missing[host][work.round[message]]--;
      advance(host);
    }
  }
};

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ns3_replay WORK_FILE\n");
    return 2;
  }
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(ROOM / SEGMENT));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(ROOM));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(ROOM));
  Replay replay(argv[1]);
  double begin = cpu_seconds();
  Simulator::Run();
  if (replay.n_complete != replay.work.bytes.size()) {
    std::fprintf(stderr, "%zu of %zu messages arrived\n", replay.n_complete, replay.work.bytes.size());
    return 1;
  }
  say(std::to_string(NS3_VERSION_MAJOR) + "." + std::to_string(NS3_VERSION_MINOR), replay.last - BEGIN, cpu_seconds() - begin);
  Simulator::Destroy();
  return 0;
}
