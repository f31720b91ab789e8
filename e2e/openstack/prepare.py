"""A project of its own for one test: user, application credential, network, router, key, server group.

prepare.py CLOUDS_YAML NAME: prints the clouds.yaml of the project as JSON.
"""
import json
import sys

import openstack

conf, name = sys.argv[1:3]


def connect(**more):
    config = openstack.config.OpenStackConfig(config_files=[conf]).get_one('local', **more)
    return openstack.connection.Connection(config=config)


admin = connect()
auth_url = admin.config.config['auth']['auth_url']
ks = admin.identity
project = ks.create_project(name=name, domain_id='default')
user = ks.create_user(name=name, password='secret', domain_id='default', default_project_id=project.id)
for role in ks.roles():
    if role.name == 'member':
        ks.assign_project_role_to_user(project, user, role)
for setter, quota in ((admin.set_compute_quotas, dict(instances=200, cores=400, ram=1 << 20)),
                      (admin.set_network_quotas, dict(port=1000, trunk=200)),
                      (admin.set_volume_quotas, dict(volumes=400, gigabytes=10000))):
    try:
        setter(project.id, **quota)
    except Exception as error:  # a cloud without that quota
        print('quota: %s' % error, file=sys.stderr)
mine = openstack.connect(auth_url=auth_url, username=name, password='secret', project_name=name,
                         user_domain_id='default', project_domain_id='default', region_name='RegionOne')
credential = mine.identity.create_application_credential(user=user.id, name='controller', secret='controller-secret')
network = mine.network.create_network(name='private')
subnet = mine.network.create_subnet(name='private', network_id=network.id, ip_version=4, cidr='10.20.0.0/16')
other = mine.network.create_network(name='other')
mine.network.create_subnet(name='other', network_id=other.id, ip_version=4, cidr='10.21.0.0/16')
external = admin.network.find_network('public')
router = mine.network.create_router(name='router', external_gateway_info={'network_id': external.id})
mine.network.add_interface_to_router(router, subnet_id=subnet.id)
mine.compute.create_keypair(name='key')
mine.compute.create_server_group(name='group', policy='soft-anti-affinity')
cloud = {'auth_type': 'v3applicationcredential', 'region_name': 'RegionOne',
         'auth': {'auth_url': auth_url, 'application_credential_id': credential.id,
                  'application_credential_secret': 'controller-secret'}}
print(json.dumps({'project': project.id, 'clouds': {'clouds': {'c': cloud}}}))
