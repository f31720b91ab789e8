"""Puts two sub-ports on a trunk, as a guest's network plugin would. ride.py CLOUDS_JSON TRUNK: prints their ids as JSON."""
import json
import sys

import openstack

config = json.load(open(sys.argv[1]))['clouds']['c']
conn = openstack.connect(load_yaml_config=False, load_envvars=False, **config)
network = conn.network.find_network('other')
ports = [conn.network.create_port(name='riding-%d' % n, network_id=network.id) for n in (1, 2)]
conn.network.add_trunk_subports(sys.argv[2], [
    {'port_id': port.id, 'segmentation_type': 'vlan', 'segmentation_id': 100 + n} for n, port in enumerate(ports)])
print(json.dumps([port.id for port in ports]))
