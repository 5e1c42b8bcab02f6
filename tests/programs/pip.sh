# A wheel installed without a network, its script run, and removed again.
set -e; d=$(mktemp -d); cd $d; export HOME=$d PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir src; cat >make.py <<'P'
import zipfile, hashlib, base64
name = "thing-1.0-py3-none-any.whl"
files = {
  "thing/__init__.py": "def main():\n    print('thing', __file__.split('/')[-2])\n",
  "thing-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n",
  "thing-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
  "thing-1.0.dist-info/entry_points.txt": "[console_scripts]\nthing = thing:main\n",
}
record = ""
with zipfile.ZipFile(name, "w") as z:
    for path, text in files.items():
        z.writestr(path, text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(text))
    z.writestr("thing-1.0.dist-info/RECORD", record + "thing-1.0.dist-info/RECORD,,\n")
P
/usr/bin/python3 make.py
/usr/bin/python3 -m venv --without-pip v
/usr/bin/python3 -m pip --python v/bin/python install -q --no-index ./thing-1.0-py3-none-any.whl
v/bin/thing; v/bin/python -c 'import thing; thing.main()'; /usr/bin/python3 -m pip --python v/bin/python list 2>/dev/null
find v -name '*thing*' | sort; /usr/bin/python3 -m pip --python v/bin/python uninstall -qy thing; find v -name '*thing*'; cd /; rm -r $d
