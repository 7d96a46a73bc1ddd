"""A package index on 127.0.0.1 with small wheels, which can misbehave on request.

usage: index_server.py FOLDER

Makes FOLDER/files (wheels), FOLDER/wheels.txt (their lock file) and FOLDER/simple (pages), serves them,
writes the port to FOLDER/port, and each request to FOLDER/requests as "PATH RANGE" (RANGE is - where
the client asked for the whole file).

A file FOLDER/cut, holding a wheel's name, cuts the next answer for that wheel half-way; FOLDER/stall
likewise sends half and then nothing more. Each acts once. While FOLDER/no-ranges exists, requests for
the rest of a file are answered with all of it.
"""

import hashlib
import http.server
import os
import pathlib
import random
import re
import sys
import time
import zipfile

TORCH = "torch-2.11.0-cp313-cp313-manylinux_2_28_x86_64.whl"
RUNTIME = "nvidia_cuda_runtime-13.0.96-py3-none-manylinux_2_17_x86_64.whl"


def make_wheel(path, members):
    noise = random.Random(path.name)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, size in members.items():
            wheel.writestr(name, noise.randbytes(size))


def make_index(folder):
    files = folder / "files"
    files.mkdir()
    make_wheel(files / TORCH, {
        "torch/include/ATen/core/Tensor.h": 100,
        "torch/lib/libtorch_cpu.so": 400_000,
        "torch/share/cmake/Torch/TorchConfig.cmake": 100,
        "torch/version.py": 20,
        "torch/nn/module.py": 100,
    })
    make_wheel(files / RUNTIME, {"nvidia/cu13/lib/libcudart.so.13": 1000})
    lines = []
    # The two kinds of links that indexes use besides full addresses.
    links = {TORCH: "../../files/" + TORCH, RUNTIME: "/files/" + RUNTIME}
    for package, version, name in (("torch", "2.11.0", TORCH), ("nvidia-cuda-runtime", "13.0.96", RUNTIME)):
        content = (files / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        lines.append(f"cpu,cuda13 {package} {version} {name} {len(content)} {digest}")
        page = folder / "simple" / package
        page.mkdir(parents=True)
        (page / "index.html").write_text(f'<a href="{links[name]}#sha256={digest}">{name}</a><br/>\n')
    (folder / "wheels.txt").write_text("# sets package version file bytes sha256\n" + "\n".join(lines) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    folder = pathlib.Path()

    def log_message(self, *_):
        pass

    def asked_to(self, what, name):
        order = self.folder / what
        if not order.exists() or order.read_text().strip() != name:
            return False
        order.unlink()
        return True

    def do_GET(self):
        wanted = self.headers.get("Range", "-")
        with open(self.folder / "requests", "a") as requests:
            requests.write(f"{self.path} {wanted}\n")
        path = self.folder / self.path.lstrip("/")
        if path.is_dir():
            path = path / "index.html"
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        start = 0
        if wanted != "-" and not (self.folder / "no-ranges").exists():
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted).group(1))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        half = len(content) // 2
        if self.asked_to("cut", path.name):
            self.wfile.write(content[start:half])
        elif self.asked_to("stall", path.name):
            self.wfile.write(content[start:half])
            self.wfile.flush()
            time.sleep(20)
        else:
            self.wfile.write(content[start:])


def main():
    folder = pathlib.Path(sys.argv[1])
    make_index(folder)
    Handler.folder = folder
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    (folder / "port.new").write_text(str(server.server_address[1]))
    os.rename(folder / "port.new", folder / "port")
    server.serve_forever()


main()
