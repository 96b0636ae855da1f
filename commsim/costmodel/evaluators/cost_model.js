// Evaluate a cost model that `commsim export cost-model` wrote: one file without dependencies, to be copied.
//
//     const model = new CostModel(JSON.parse(text));
//     const [time, low, high] = model.answer("all_reduce", 4, 8, 64 * 2 ** 20); // 4 machines of 8 GPUs, 64 MiB
//
// Times are seconds, sizes bytes as nccl-tests counts them. The versions in Python and C return the same bits.
"use strict";

class CostModel {
  constructor(tree) {
    if (tree.format !== "commsim cost model" || tree.version !== 1) {
      throw new Error("expected a commsim cost model of version 1");
    }
    this.tree = tree;
    this.largest = tree.largest_size;
    this.byName = new Map();
    for (const curve of tree.curves) {
      const name = CostModel.nameOf(curve.operation, curve.machines, curve.gpus, curve.faults);
      this.byName.set(name, curve);
    }
  }

  static nameOf(operation, machines, gpus, faults) {
    return `${operation} ${machines} ${gpus} ${faults}`;
  }

  // Return the curve of an operation on machines with GPUs each, with faults as the file names them ("": none).
  curve(operation, machines, gpus, faults = "") {
    const found = this.byName.get(CostModel.nameOf(operation, machines, gpus, faults));
    if (found === undefined) {
      throw new Error(`no curve of ${operation} on ${machines} machines of ${gpus} GPUs`);
    }
    return found;
  }

  // Return time, low and high; below the least size of the file, those of the least.
  answer(operation, machines, gpus, size, faults = "") {
    const curve = this.curve(operation, machines, gpus, faults);
    const sizes = curve.size;
    if (!(size >= 0 && size <= this.largest)) {
      throw new Error(`size must be 0 to ${this.largest}, got ${size}`);
    }
    const time = curve.time;
    const low = curve.low || time;
    const high = curve.high || time;
    let first = 0; // the number of sizes up to this one
    let last = sizes.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (size < sizes[middle]) last = middle;
      else first = middle + 1;
    }
    const i = Math.max(0, first - 1);
    if (first === 0 || i === sizes.length - 1) return [time[i], low[i], high[i]];
    const part = (size - sizes[i]) / (sizes[i + 1] - sizes[i]);
    return [
      time[i] + (time[i + 1] - time[i]) * part,
      low[i] + (low[i + 1] - low[i]) * part,
      high[i] + (high[i + 1] - high[i]) * part,
    ];
  }

  // Return what the library chooses, such as ring/ll128; "" where it chooses nothing.
  choice(operation, machines, gpus, size, faults = "") {
    const choices = this.curve(operation, machines, gpus, faults).choices || [];
    let name = "";
    for (const [start, chosen] of choices) if (start <= Math.max(size, 1)) name = chosen;
    return name;
  }
}

if (typeof module !== "undefined") module.exports = { CostModel };
