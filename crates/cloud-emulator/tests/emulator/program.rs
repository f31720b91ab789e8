//! The binary: starts, says where, serves, stops when told to.
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Ended with the test, whatever the test does.
struct Program(Child);
impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
impl Program {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cloud-emulator"));
        Program(command.args(arguments).stderr(Stdio::null()).spawn().unwrap())
    }
    fn end(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        self.0.wait().unwrap()
    }
}

#[test]
fn it_serves_where_it_says_and_stops_when_told() {
    let folder = std::env::temp_dir().join(format!("cloud-emulator-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, settings) = (folder.join("address"), folder.join("settings.json"));
    std::fs::write(&settings, r#"{"region": "there-1"}"#).unwrap();
    let tokens = ["--token", "alice@acct-9=s1", "--token", "bob=s2"];
    let paths = ["--print-address-to", file.to_str().unwrap(), "--settings", settings.to_str().unwrap()];
    let mut program = Program::start(&[&["sample", "--listen", "127.0.0.1:0"], &tokens[..], &paths[..]].concat());
    let address = loop {
        if let Ok(address) = std::fs::read_to_string(&file) {
            break address;
        }
        assert!(program.0.try_wait().unwrap().is_none(), "it ended before it served");
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut stream = TcpStream::connect(address).unwrap();
    let ask = "GET /v1/whoami HTTP/1.1\r\nHost: cloud\r\nConnection: close\r\nAuthorization: Bearer s1\r\n\r\n";
    stream.write_all(ask.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.ends_with(r#"{"account":"acct-9","region":"there-1","principal":"alice"}"#), "{reply}");
    assert!(program.end().success());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn it_refuses_settings_that_name_no_kind() {
    let file = std::env::temp_dir().join(format!("cloud-emulator-{}-wrong.json", std::process::id()));
    std::fs::write(&file, r#"{"quotas": {"balloons": 1}}"#).unwrap();
    let mut program = Program::start(&["sample", "--settings", file.to_str().unwrap()]);
    assert!(!program.0.wait().unwrap().success());
    std::fs::remove_file(file).unwrap();
}
