"""Examples of each verb, which its help prints; ``tests/cli/test_help.py`` runs those of a verb in their order."""

from __future__ import annotations

EXAMPLES: dict[str, str] = {
    "": """
        commsim run ring_all_reduce --topology star:n_hosts=8 -b 1M -e 64M
        commsim run nccl --topology dgx-h100@star:machines=4 -b 1G -e 1G
        commsim workload step --model llama3-8b --gpu h100 --ranks 64 --tp 4 --global-batch 128
        commsim place examples/cluster.toml examples/jobs.json
        commsim help run""",
    "run": """
        commsim run ring_all_reduce --topology star:n_hosts=8 -b 1M -e 64M
        commsim run nccl --topology dgx-h100@star:machines=4 -b 1G -e 1G
        commsim run --operation all_reduce --topology fat_tree:k=4 -b 64M -e 64M
        commsim run direct_all_to_all --topology leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4 --fail \
            switch:spine0 --draw load.svg
        commsim run ring_all_reduce --topology star:n_hosts=4 --engine packet --preset uec -b 64K -e 64K""",
    "advise": """
        commsim advise --topology star:n_hosts=8 --size 1MiB
        commsim advise --topology star:n_hosts=8 --ranks 4 --size 1MiB --density 0.01 --crossovers
        commsim advise --topology star:n_hosts=8 --ranks 4 --size 1MiB --density 0.01 --lossy
        commsim advise --topology star:n_hosts=8 --size 1MiB --programmable --json advice.json
        commsim advise --topology star:n_hosts=4 --operation expert_exchange""",
    "nccl": """
        commsim nccl --topology dgx-h100
        commsim nccl --topology dgx-h100@star:machines=4 --operation all_reduce
        commsim nccl --topology dgx-h100 --operation all_reduce --size 1M
        commsim nccl --topology dgx-a100 --operation all_gather --nccl-version 2.18
        commsim nccl --topology dgx-h100 --operation all_reduce --tuner-csv tuner.csv""",
    "traffic": """
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB --pattern \
            incast --peers 4
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB --balancing ecmp
        commsim traffic --topology fat_tree:k=4 --size 64KiB --seed 3
        commsim traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --size 64KiB --report \
            traffic.html""",
    "bound": """
        commsim bound --topology star:n_hosts=8 --operation all_reduce
        commsim bound --topology star:n_hosts=8 --operation all_to_all -b 1K -e 1M -f 32
        commsim bound --topology torus:dims=3x3 --operation all_gather --algorithm none
        commsim bound --topology star:n_hosts=8 --operation gather --root 3 --algorithm none
        commsim bound --topology star:n_hosts=8 --operation all_reduce --algorithm ring_all_reduce""",
    "synthesize": """
        commsim synthesize --topology ring:n_hosts=4 --operation all_gather -b 1M -e 1M
        commsim synthesize --topology star:n_hosts=4 --operation all_reduce -b 1M -e 1M
        commsim synthesize --topology ring:n_hosts=4 --operation all_gather -b 1M -e 1M -o ring.npz
        commsim synthesize --topology ring:n_hosts=4 --operation all_gather -b 1M -e 1M --scale 'link:h1:*=0.5'
        commsim synthesize --topology star:n_hosts=4 --operation ep_dispatch""",
    "calibrate": """
        mpirun -n 2 commsim calibrate
        mpirun -n 2 commsim calibrate --passes 1 -o here.toml
        mpirun -n 2 commsim calibrate --passes 1 --json calibration.json
        mpirun -n 2 commsim calibrate --passes 1 --csv calibration.csv
        torchrun --nproc-per-node 2 --no-python commsim calibrate --passes 1 --backend gloo""",
    "validate": """
        mpirun -n 2 commsim validate mpi -b 1K -e 1M -f 32
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K
        mpirun -n 2 commsim validate mpi --collective halving_doubling_all_reduce -b 4K -e 4K
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K -n 5 -w 1
        mpirun -n 2 commsim validate mpi --collective ring_all_reduce -b 64K -e 64K --json measured.json""",
    "emulate": """
        commsim emulate -n 2 --topology star:n_hosts=2 -- python examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2,bandwidth=10Gbps --ranks-as threads -- python \
            examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2,latency=50us -- python examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2 --overhead 1us -- python examples/ping_pong.py
        commsim emulate -n 2 --topology star:n_hosts=2 --json emulated.json -- python examples/ping_pong.py""",
    "testbed": """
        commsim testbed status
        commsim testbed run --network star:n_hosts=4,bandwidth=200Mbps --collective ring_all_reduce -b 1M -e 1M
        commsim testbed up leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Mbps --routing \
            dmodk --name lab
        commsim testbed share --name lab --jobs 'h0,h2;h1,h3' --shifts 0ms,470ms
        commsim testbed down lab""",
    "compare": """
        commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 4M > a.txt
        commsim run ring_all_reduce --topology star:n_hosts=4,bandwidth=50Gbps -b 1M -e 4M --json b.json
        commsim compare b.json a.txt
        commsim compare a.txt --topology star:n_hosts=4 --collective ring_all_reduce
        commsim compare a.txt --topology star:n_hosts=4 --collective ring_all_reduce --line-rate 100Gbps""",
    "reproduce": """
        commsim reproduce
        commsim reproduce atp
        commsim reproduce crux
        commsim reproduce chimera 'table 2, GPipe'
        commsim reproduce gloo --json gloo.json""",
    "fit": """
        commsim run ring_all_reduce --topology star:n_hosts=4,latency=2us -b 1K -e 64M -f 4 > measured.txt
        commsim fit measured.txt --collective ring_all_reduce
        commsim fit measured.txt --collective ring_all_reduce --line-rate 100Gbps
        commsim fit measured.txt --collective ring_all_reduce --seed 3
        commsim fit measured.txt --collective ring_all_reduce --json fit.json""",
    "switch": """
        commsim switch simulate --system switchml-rdma --workers 4 --size 64KiB --loss 0,0.01
        commsim switch simulate --system switchml-udp --workers 4 --size 64KiB --pcap packets.pcap
        commsim switch pcap packets.pcap
        commsim switch budget --system switchml-rdma --hardware tofino-1 --pool-size 512
        commsim switch serve & sleep 2; commsim switch all-reduce --rank 0 --workers 2 & \
            commsim switch all-reduce --rank 1 --workers 2; commsim switch status; kill %1""",
    "workload": """
        commsim workload step --model llama3-8b --gpu h100 --ranks 64 --tp 4 --global-batch 128
        commsim workload kv --layers 4 --kv-heads 8 --from 2 --to 4 --tokens 128 --topology star:n_hosts=6
        commsim workload weights --size 1GB --from 2 --to 4 --topology star:n_hosts=6
        commsim workload pipeline --stages 4 --micro-batches 8 --forward 10ms --backward 20ms
        commsim workload moe --layers 4 --ranks 8 --attention 1ms --expert 2ms --tokens 20MB --gradients \
            60MB --bandwidth 100Gbps
        commsim workload reshard --size 1GB --receivers 4 --bandwidth 100Gbps
        commsim workload policies
        commsim workload systems
        commsim workload profile torch.nn:PReLU --input 8 -o gradients.csv
        commsim workload run --trace gradients.csv --workers 4 --policy ddp --bandwidth 10Gbps
        commsim schedule export ring_all_reduce --ranks 4 --size 1M -o ring.goal
        commsim workload import ring.goal -o graph.toml
        commsim workload export graph.toml -o graph.et
        commsim workload calls graph.0.et --network star:n_hosts=4,bandwidth=10Gbps
        commsim place examples/cluster.toml examples/jobs.json --json placed.json
        commsim workload share examples/cluster.toml examples/jobs.json --shifts placed.json
        commsim workload formats""",
    "place": """
        commsim place examples/cluster.toml examples/jobs.json --check
        commsim place rank examples/cluster.toml examples/jobs.json --candidates 4
        commsim place moves examples/cluster.toml examples/jobs.json
        commsim place score --capacity 50Gbps examples/jobs.json
        commsim place order h0,h2,h1,h3 --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2
        commsim place export examples/cluster.toml --to slurm-conf -o topology.conf
        commsim place import topology.conf --from slurm-conf --tier-bandwidth 1=100Gbps,2=2:1 -o cluster.toml
        commsim place serve --cluster examples/cluster.toml --port 8080 & sleep 8; curl -s \
            http://127.0.0.1:8080/jobs; kill %1""",
    "cluster": """
        commsim cluster policies
        commsim cluster models
        commsim cluster trace poisson:jobs=8,load=0.9,seed=1 --gpus 32 -o trace.csv
        commsim cluster run examples/cluster.toml --trace trace.csv --policy fifo,tiresias --compare
        commsim cluster run examples/cluster.toml --trace trace.csv --policy themis --cassini""",
    "sweep": """
        commsim sweep plan examples/sweep_10k.toml
        commsim sweep examples/sweep_10k.toml -o results --limit 20
        commsim sweep run examples/sweep_10k.toml -o part1 --part 1/2 --limit 5
        commsim sweep merge both part1
        commsim sweep status results
        commsim sweep sql results 'select "collective.name", max(busbw_Bps) from sweep group by all'
        commsim sweep export results -o results.csv
        commsim sweep cheapest examples/sweep_cost.toml""",
    "report": """
        commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 4M --json a.json
        commsim report a.json
        commsim report a.json --no-detail -o rows.html
        commsim report a.json --show-ranks 0,2-3 -o ranks.html
        commsim report a.json --rename ring_all_reduce=ring -o ring.html""",
    "diff": """
        commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 4M --json a.json
        commsim run ring_all_reduce --topology ring:n_hosts=4 -b 1M -e 4M --json b.json
        commsim diff a.json b.json
        commsim diff a.json b.json --detail
        commsim diff a.json b.json --timeline both.json.gz""",
    "plot": """
        commsim run ring_all_reduce double_tree_all_reduce --topology star:n_hosts=4 -b 1M -e 4M --json a.json
        commsim plot busbw a.json -o busbw.pdf
        commsim plot speedup a.json --baseline ring_all_reduce -o speedup.svg
        commsim plot timeline a.json -o timeline.svg --width page
        commsim plot time a.json -o time.png --label 'y=time of one all-reduce'""",
    "trace": """
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o ring.json
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o ring.pftrace
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o ranks.json --tracks ranks
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o part.json --from 20us --to 80us
        commsim trace ring_all_reduce --topology star:n_hosts=4 -b 1M -e 1M -o path.json --limit 8 --arrows \
            critical""",
    "topo": """
        commsim topo list
        commsim topo presets dgx-h100
        commsim topo show fat_tree:k=4 --draw fat_tree.svg
        commsim topo save star:n_hosts=4 -o network.toml && commsim topo check network.toml
        commsim topo export network.toml -o network.graphml && commsim topo import network.graphml -o back.toml
        commsim topo formats""",
    "schedule": """
        commsim schedule list
        commsim schedule show ring_all_reduce --ranks 4
        commsim schedule check halving_doubling_all_reduce --ranks 9
        commsim schedule save ring_all_reduce --ranks 4 -o ring.npz
        commsim schedule export ring.npz -o ring.xml && commsim schedule import ring.xml -o back.npz
        commsim schedule formats""",
    "schema": """
        commsim schema
        commsim schema run
        commsim schema topo show
        commsim schema switch simulate
        commsim schema workload step""",
    "warmup": """
        commsim warmup
        commsim warmup -v
        commsim warmup --jobs 1
        commsim warmup --json compiled.json
        NUMBA_CACHE_DIR=kernels commsim warmup""",
    "doctor": """
        commsim doctor
        commsim doctor --json machine.json
        commsim doctor --csv machine.csv
        NUMBA_CACHE_DIR=kernels commsim doctor
        mpirun -n 2 commsim doctor""",
}


def examples_of(prog: str) -> list[str]:
    """Return the examples of a verb, or those of one of its verbs.

    Parameters
    ----------
    prog : str
        Command as in its usage, such as ``commsim run`` or ``commsim topo show``.
    """
    verb, _, inner = prog.removeprefix("commsim").strip().partition(" ")
    lines = [" ".join(line.split()) for line in EXAMPLES.get(verb, "").strip().splitlines()]
    return [line for line in lines if f"commsim {verb} {inner}" in line] if inner else lines
