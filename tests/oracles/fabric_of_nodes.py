"""A cluster of nodes with several NICs on rails, as each of the tools that list cables would print it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

NIC = "mlx5_{}"
SIGNALS = {"EDR": "25.78125", "HDR": "53.125", "NDR": "106.25"}
GBPS = {"EDR": 100, "HDR": 200, "NDR": 400}


@dataclass
class Fabric:
    """Cables by their two ports, with lanes and speed; those that are down have no lanes."""

    cables: list[tuple[tuple[str, str], tuple[str, str], int, str]] = field(default_factory=list)

    def port(self, device: str) -> str:
        return str(1 + sum(device in (a[0], b[0]) for a, b, *_ in self.cables))


def rails(n_nodes: int, n_nics: int = 8, per_leaf: int = 32, n_spines: int = 4, speed: str = "NDR") -> Fabric:
    """Return nodes of which NIC i is on a leaf of rail i, and leaves under spines."""
    fabric = Fabric()
    leaves = []
    for pod in range(-(-n_nodes // per_leaf)):
        for rail in range(n_nics):
            leaf = f"leaf{pod * n_nics + rail:02d}"
            leaves.append(leaf)
            for node in range(pod * per_leaf, min(n_nodes, (pod + 1) * per_leaf)):
                fabric.cables.append(((f"node{node:02d}", NIC.format(rail)), (leaf, fabric.port(leaf)), 4, speed))
    for leaf in leaves:
        for spine in range(n_spines):
            name = f"spine{spine}"
            fabric.cables.append(((leaf, fabric.port(leaf)), (name, fabric.port(name)), 4, speed))
    return fabric


def changed(fabric: Fabric, device: str, port: str, lanes: int) -> Fabric:
    """Return the fabric with another width of the cable at a port; 0 lanes: it is down."""
    return Fabric([(a, b, lanes if (device, port) in (a, b) else n, speed) for a, b, n, speed in fabric.cables])


def csv(fabric: Fabric, header: str = "a_device,a_port,b_device,b_port,speed,state") -> str:
    rows = [
        ",".join((*a, *b, f"{GBPS[speed] * lanes / 4:g}G", "up" if lanes else "down"))
        for a, b, lanes, speed in fabric.cables
    ]
    return "\n".join([header, *rows, ""])


def is_node(device: str) -> bool:
    return device.startswith("node")


def ids(fabric: Fabric) -> dict[tuple[str, str], str]:
    """Identity of each node of InfiniBand: a NIC, or a switch."""
    ends = [end for a, b, *_ in fabric.cables for end in (a, b)]
    keys = dict.fromkeys((d, p) if is_node(d) else (d, "") for d, p in ends)
    return {key: f"{'H' if is_node(key[0]) else 'S'}-{0x1000 + i:016x}" for i, key in enumerate(keys)}


def described(key: tuple[str, str]) -> str:
    return " ".join(key) if key[1] else f"MF0;{key[0]}:MQM9700/U1"


def ibnetdiscover(fabric: Fabric) -> str:
    guid = ids(fabric)
    lid = {key: i + 1 for i, key in enumerate(guid)}
    lines = ["#", "# Topology file: generated on Sun Nov 29 00:00:00 2026", "#"]
    for key, name in sorted(guid.items(), key=lambda item: item[1][0] == "H"):
        device, _ = key
        word = "Ca" if is_node(device) else "Switch"
        lines += ["", "vendid=0x2c9", f"{'ca' if word == 'Ca' else 'switch'}guid=0x{name[2:]}({name[2:]})"]
        tail = "" if word == "Ca" else f" base port 0 lid {lid[key]} lmc 0"
        lines.append(f'{word}\t64 "{name}"\t\t# "{described(key)}"{tail}')
        for a, b, lanes, speed in fabric.cables:
            for near, far in ((a, b), (b, a)):
                if near[0] == device and (not is_node(device) or near == key) and lanes:
                    far_key = far if is_node(far[0]) else (far[0], "")
                    near_port = "1" if is_node(near[0]) else near[1]
                    far_port = "1" if is_node(far[0]) else far[1]
                    own = f"({name[2:]}) " if is_node(device) else ""
                    at = f"({guid[far_key][2:]}) " if is_node(far[0]) else ""
                    said = f"lid {lid[key]} lmc 0 " if is_node(device) else ""
                    lines.append(
                        f'[{near_port}]{own}\t"{guid[far_key]}"[{far_port}]{at}\t\t# {said}"{described(far_key)}" '
                        f"lid {lid[far_key]} {lanes}x{speed}"
                    )
    return "\n".join([*lines, ""])


def iblinkinfo(fabric: Fabric) -> str:
    guid = ids(fabric)
    lid = {key: i + 1 for i, key in enumerate(guid)}
    lines = []
    for key in guid:
        device, _ = key
        lines.append(f"CA: {described(key)}:" if is_node(device) else f"Switch: 0x{guid[key][2:]} {described(key)}:")
        for a, b, lanes, speed in fabric.cables:
            for near, far in ((a, b), (b, a)):
                if near[0] != device or (is_node(device) and near != key):
                    continue
                port = "1" if is_node(device) else near[1]
                head = f"      0x{guid[key][2:]} " if is_node(device) else "      "
                if not lanes:
                    state = "(                Down/ Polling)"
                    lines.append(f'{head}{lid[key]:6d} {port:>4}[  ] =={state}==>             [  ] "" ( )')
                    continue
                far_key = far if is_node(far[0]) else (far[0], "")
                far_port = "1" if is_node(far[0]) else far[1]
                could = "Could be 4X" if lanes < 4 else ""
                lines.append(
                    f"{head}{lid[key]:6d} {port:>4}[  ] ==( {lanes}X {SIGNALS[speed]:>18} Gbps Active/  LinkUp)==>  "
                    f'{lid[far_key]:6d} {far_port:>4}[  ] "{described(far_key)}" ( {could})'
                )
    return "\n".join([*lines, ""])


def port_report(fabric: Fabric) -> str:
    """What ``ibnetdiscover -p`` prints."""
    guid = ids(fabric)
    lid = {key: i + 1 for i, key in enumerate(guid)}
    lines = []
    for a, b, lanes, speed in fabric.cables:
        for ends in ((a, b), (b, a)):
            keys = [end if is_node(end[0]) else (end[0], "") for end in ends]
            said = [
                f"{'CA' if is_node(end[0]) else 'SW'} {lid[key]:5d} {1 if key[1] else end[1]:>2} 0x{guid[key][2:]}"
                for end, key in zip(ends, keys, strict=True)
            ]
            if lanes:
                names = " - ".join(f"'{described(key)}'" for key in keys)
                lines.append(f"{said[0]} {lanes}x {speed} - {said[1]} ( {names} )")
            else:
                lines.append(f"{said[0]} 4x SDR{'':36}'{described(keys[0])}'")
    return "\n".join([*lines, ""])


def lldp(fabric: Fabric, folder: Path) -> Path:
    """Write one output of lldpcli for each node and switch."""
    folder.mkdir()
    boxes: dict[str, list[dict[str, object]]] = {}
    for a, b, lanes, speed in fabric.cables:
        if not lanes:
            continue
        for near, far in ((a, b), (b, a)):
            bridge = {"type": "Bridge", "enabled": not is_node(far[0])}
            station = {"type": "Station", "enabled": is_node(far[0])}
            boxes.setdefault(near[0], []).append(
                {
                    near[1]: {
                        "via": "LLDP",
                        "chassis": {far[0]: {"id": {"type": "mac", "value": "00:11"}, "capability": [bridge, station]}},
                        "port": {
                            "id": {"type": "ifname", "value": far[1]},
                            "auto-negotiation": {"current": f"{GBPS[speed] * lanes // 4}GBase-CR4"},
                        },
                    }
                }
            )
    for name, interfaces in boxes.items():
        tree = {"lldp": {"interface": interfaces if len(interfaces) > 1 else interfaces[0]}}
        (folder / f"{name}.json").write_text(json.dumps(tree))
    return folder


def netbox_json(fabric: Fabric) -> str:
    def end(device: str, port: str) -> list[dict[str, object]]:
        return [{"object_type": "dcim.interface", "object": {"device": {"name": device}, "name": port}}]

    rows = [
        {"id": i, "a_terminations": end(*a), "b_terminations": end(*b), "status": {"value": "connected"}}
        for i, (a, b, *_) in enumerate(fabric.cables)
    ]
    return json.dumps({"count": len(rows), "results": rows})


def netq_json(fabric: Fabric) -> str:
    """Return a row for each end of a cable, as a database of LLDP has them."""
    names = ("hostname", "ifname", "peer_hostname", "peer_ifname")
    ends = [pair for a, b, *_ in fabric.cables for pair in ((a, b), (b, a))]
    return json.dumps({"lldp": [dict(zip(names, (*near, *far), strict=True)) for near, far in ends]})
