# npm ci from a cache, without a network.
set -e; d=$(mktemp -d); cd $d; export HOME=$d npm_config_update_notifier=false npm_config_cache=$d/cache npm_config_audit=false npm_config_fund=false
mkdir dep dep/lib app; echo '{"name":"dep","version":"1.0.0","main":"lib/m.js","bin":{"dep":"lib/m.js"}}' >dep/package.json
printf '#!/usr/bin/env node\nmodule.exports = n => n + 1\nif (require.main === module) console.log("dep runs")\n' >dep/lib/m.js
(cd dep && npm pack --silent)
npm cache add ./dep/dep-1.0.0.tgz
cat >app/package.json <<'J'
{"name":"app","version":"1.0.0","dependencies":{"dep":"file:../dep/dep-1.0.0.tgz"},"scripts":{"go":"dep && node -p 'require(\"dep\")(41)'"}}
J
cd app; npm install --package-lock-only --offline | sed "s, in .*,,"; grep -c integrity package-lock.json
npm ci --offline | sed 's/ in .*//'; npm run -s go; find node_modules | sort; npm ls | tail -n +2; cd /; rm -r $d
