"""A server as the Go provider leaves it: a port named by its server, a root volume, no marks.

legacy.py CLOUDS_JSON NAME: prints the ids as JSON.
"""
import json
import sys
import time

import openstack

config = json.load(open(sys.argv[1]))['clouds']['c']
conn = openstack.connect(load_yaml_config=False, load_envvars=False, **config)
name = sys.argv[2]
network = conn.network.find_network('private')
image = conn.image.find_image('tiny')
flavor = conn.compute.find_flavor('m1.tiny')
port = conn.network.create_port(name=name + '-0', network_id=network.id)
volume = conn.block_storage.create_volume(name=name + '-root', size=1, image_id=image.id)
conn.block_storage.wait_for_status(volume, 'available', failures=['error'], interval=1, wait=120)
server = conn.compute.create_server(
    name=name, flavor_id=flavor.id, networks=[{'port': port.id}], metadata={'team': 'x'},
    block_device_mapping=[{'boot_index': 0, 'source_type': 'volume', 'destination_type': 'volume',
                           'uuid': volume.id, 'delete_on_termination': True}])
server = conn.compute.wait_for_server(server, interval=1, wait=180)
while not conn.network.get_port(port.id).device_id:
    time.sleep(1)
print(json.dumps({'server': server.id, 'port': port.id, 'volume': volume.id}))
