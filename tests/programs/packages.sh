# A Debian package built, fetched from a repository in files, unpacked and listed; an archive of each kind.
set -e; umask 022
d=$(mktemp -d); cd $d
mkdir -p p/DEBIAN p/usr/share/doc/thing p/usr/bin; printf 'Package: thing\nVersion: 1.2\nArchitecture: all\nMaintainer: N <n@example.org>\nDescription: a thing\n' >p/DEBIAN/control
printf '#!/bin/sh\necho thing\n' >p/usr/bin/thing; chmod 755 p/usr/bin/thing; ln -s thing p/usr/bin/other; seq 1000 >p/usr/share/doc/thing/text
mkdir repo; dpkg-deb --root-owner-group -b p repo/thing_1.2_all.deb
cd repo; { sed '/^$/d' ../p/DEBIAN/control; echo "Filename: ./thing_1.2_all.deb"; echo "Size: $(stat -c %s thing_1.2_all.deb)"; echo "SHA256: $(sha256sum <thing_1.2_all.deb | cut -d' ' -f1)"; } >Packages; cd ..
mkdir -p apt/lists/partial apt/cache/archives/partial apt/etc/apt.conf.d apt/etc/preferences.d; touch apt/status; echo "deb [trusted=yes] file:$d/repo ./" >apt/etc/sources.list
cat >apt.conf <<X
Dir::State "$d/apt"; Dir::State::status "$d/apt/status"; Dir::Cache "$d/apt/cache"; Dir::Etc "$d/apt/etc"; APT::Sandbox::User ""; Acquire::Languages "none";
X
export APT_CONFIG=$d/apt.conf
apt-get -qq update; mkdir got; cd got; apt-get -qq download thing; ls; cd ..
dpkg -x got/*.deb out; dpkg-deb -I got/*.deb | grep -E '^ (Package|Version)'; dpkg-deb -c got/*.deb | sed 's/[0-9-]* [0-9:]* / /'; out/usr/bin/other; sha256sum <out/usr/share/doc/thing/text
for z in gzip bzip2 xz; do tar c --$z -f t.$z out; tar tf t.$z | sort | sha256sum; done; find out | cpio -o --quiet | cpio -t --quiet | sort | sha256sum
cd /; rm -r $d
