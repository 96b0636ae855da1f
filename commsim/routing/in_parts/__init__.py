"""Routes in parts, one after the other: by way of a third group or switch, or by a NIC of several."""
