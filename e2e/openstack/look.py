"""Everything of a project, as openstacksdk sees it. look.py CLOUDS_JSON: prints JSON."""
import json
import sys

import openstack

config = json.load(open(sys.argv[1]))['clouds']['c']
conn = openstack.connect(load_yaml_config=False, load_envvars=False, **config)
out = {
    'servers': [s.to_dict() for s in conn.compute.servers()],
    'ports': [p.to_dict() for p in conn.network.ports(project_id=conn.current_project_id)
              if not p.device_owner.startswith('network:')],
    'trunks': [t.to_dict() for t in conn.network.trunks()],
    'volumes': [v.to_dict() for v in conn.block_storage.volumes()],
    'floatingips': [f.to_dict() for f in conn.network.ips()],
}
print(json.dumps(out, default=str))
