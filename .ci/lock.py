"""Turn pip's pylock.toml into names, versions and hashes; where a mirror keeps its files does not matter."""

import platform
import sys
import tomllib
from pathlib import Path

packages = tomllib.loads(Path(sys.argv[1]).read_text())["packages"]
print(f"# make lock; Python {platform.python_version()[:4]} on {platform.system()} {platform.machine()}. Use:")
print("# pip install --require-hashes -r requirements.lock && pip install --no-deps --no-build-isolation -e .")
for package in sorted(packages, key=lambda package: package["name"]):
    files = package.get("wheels", []) + ([package["sdist"]] if "sdist" in package else [])
    hashes = [f"--hash=sha256:{file['hashes']['sha256']}" for file in files]
    if hashes:  # commsim itself has none
        print(f"{package['name']}=={package['version']}", *hashes, sep=" \\\n    ")
