// The work that a peer replays, as benchmarks/peers/work_file.py writes it: columns of int32 and of doubles.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

struct WorkFile {
  int32_t n_hosts, n_nodes, n_rounds, fetched;                      // the hosts are the first nodes
  std::vector<double> bandwidth, latency;                           // of each directed link: bytes/s, s
  std::vector<int32_t> link_src, link_dst;                          // nodes
  std::vector<int32_t> route_src, route_dst, route_first, route_link;  // links of route r: first[r] .. first[r + 1]
  std::vector<double> bytes;                                        // of each message
  std::vector<int32_t> route, round;                                // messages are in order of their round
  std::vector<std::vector<int32_t>> sends, receives;                // messages of each host

  explicit WorkFile(const char* path) {
    file_ = std::fopen(path, "rb");
    if (!file_)
      stop("cannot be opened");
    std::vector<int32_t> n = column<int32_t>(8);
    n_hosts = n[0], n_nodes = n[1], n_rounds = n[2], fetched = n[3];
    bandwidth = column<double>(n[4]), latency = column<double>(n[4]);
    link_src = column<int32_t>(n[4]), link_dst = column<int32_t>(n[4]);
    route_src = column<int32_t>(n[5]), route_dst = column<int32_t>(n[5]);
    route_first = column<int32_t>(n[5] + 1), route_link = column<int32_t>(n[6]);
    bytes = column<double>(n[7]), route = column<int32_t>(n[7]), round = column<int32_t>(n[7]);
    if (std::fgetc(file_) != EOF)
      stop("is too long");
    std::fclose(file_);
    sends.resize(n_hosts), receives.resize(n_hosts);
    for (int32_t m = 0; m < n[7]; m++) {
      sends[source(m)].push_back(m);
      receives[target(m)].push_back(m);
    }
  }

  int32_t source(int32_t message) const { return route_src[route[message]]; }
  int32_t target(int32_t message) const { return route_dst[route[message]]; }

private:
  std::FILE* file_;

  template <class T> std::vector<T> column(int32_t n) {
    std::vector<T> values(n);
    if (std::fread(values.data(), sizeof(T), n, file_) != static_cast<size_t>(n))
      stop("is cut short");
    return values;
  }

  [[noreturn]] static void stop(const char* why) {
    std::fprintf(stderr, "the work file %s\n", why);
    std::exit(2);
  }
};

inline double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Largest resident size in MB. Not from getrusage, which starts with the size of the process that started this one.
inline double peak_mb() {
  double kib = 0;
  char line[256];
  if (std::FILE* status = std::fopen("/proc/self/status", "r")) {
    while (std::fgets(line, sizeof line, status))
      if (std::strncmp(line, "VmHWM:", 6) == 0)
        kib = std::atof(line + 6);
    std::fclose(status);
  }
  return kib * 1024 / 1e6;
}

inline void say(const std::string& version, double time, double run_cpu) {
  std::printf("{\"version\": \"%s\", \"time_s\": %.17g, \"run_cpu_s\": %.6f, \"peak_MB\": %.3f}\n", version.c_str(), time,
              run_cpu, peak_mb());
}
