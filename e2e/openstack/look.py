"""Everything of a project, as openstacksdk sees it. look.py CLOUDS_JSON ADMIN_CLOUDS_YAML: prints JSON.

User data is shown to administrators only, so it is read as one.
"""
import base64
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
out['server_groups'] = [g.to_dict() for g in conn.compute.server_groups()]
admin = openstack.connection.Connection(
    config=openstack.config.OpenStackConfig(config_files=[sys.argv[2]]).get_one('local'))


def user_data(server):
    """One that went since it was listed has none."""
    try:
        data = admin.compute.get_server(server).user_data
    except openstack.exceptions.NotFoundException:
        return None
    return base64.b64decode(data).decode() if data else None


out['user_data'] = {server['id']: user_data(server['id']) for server in out['servers']}
print(json.dumps(out, default=str))
