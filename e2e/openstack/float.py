"""A floating IP that leads nowhere, as a pool would have it. float.py CLOUDS_JSON: prints id and address as JSON."""
import json
import sys

import openstack

config = json.load(open(sys.argv[1]))['clouds']['c']
conn = openstack.connect(load_yaml_config=False, load_envvars=False, **config)
address = conn.network.create_ip(floating_network_id=conn.network.find_network('public').id)
print(json.dumps({'id': address.id, 'address': address.floating_ip_address}))
