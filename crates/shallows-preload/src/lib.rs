//! The sockets of a program that loads this library get a QJUMP level (§4), without root.
//!
//! `shallows exec` sets `LD_PRELOAD` to it, and `SHALLOWS_PRIORITY` (`SO_PRIORITY`, which needs
//! root), `SHALLOWS_TOS` (`IP_TOS`, `IPV6_TCLASS`, which carries the level without root) and, if
//! wanted, `SHALLOWS_SNDBUF` (`SO_SNDBUF`). The C library's
//! `socket`, `connect`, `accept` and `accept4` are called as before; then the socket is marked.
//! Programs that make their system calls themselves, as static and Go programs do, escape it.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::{env, mem, ptr};

use libc::{c_int, c_void, sockaddr, socklen_t};

type Socket = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;
type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;
type Accept = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
type Accept4 = unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;

/// The next function of this name after ours; null if there is none.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Says that a function of the C library is missing.
fn missing() -> c_int {
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

macro_rules! original {
    ($name:literal as $type:ty) => {{
        static FOUND: OnceLock<Option<$type>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let found = next($name);
            // SAFETY: the C library's function of this name has this type.
            (!found.is_null()).then(|| unsafe { mem::transmute::<*mut c_void, $type>(found) })
        })
    }};
}

/// Mark that sockets receive.
#[derive(Clone, Copy)]
struct Mark {
    priority: Option<c_int>,
    traffic_class: Option<c_int>,
    send_buffer: Option<c_int>,
}

impl Mark {
    fn get() -> &'static Self {
        static MARK: OnceLock<Mark> = OnceLock::new();
        MARK.get_or_init(|| {
            let number = |name: &str| env::var(name).ok()?.parse().ok();
            Self {
                priority: number("SHALLOWS_PRIORITY"),
                traffic_class: number("SHALLOWS_TOS"),
                send_buffer: number("SHALLOWS_SNDBUF"),
            }
        })
    }
}

/// Marks a socket, if it is one of IP. Leaves errno as it is.
fn mark(socket: c_int) {
    // SAFETY: errno is this thread's.
    let errno = unsafe { *libc::__errno_location() };
    let family = option(socket, libc::SOL_SOCKET, libc::SO_DOMAIN);
    if matches!(family, Some(libc::AF_INET | libc::AF_INET6)) {
        let mark = Mark::get();
        set(socket, libc::SOL_IP, libc::IP_TOS, mark.traffic_class);
        if family == Some(libc::AF_INET6) {
            set(
                socket,
                libc::SOL_IPV6,
                libc::IPV6_TCLASS,
                mark.traffic_class,
            );
        }
        set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, mark.send_buffer);
        // Last, because setting IP_TOS changes it.
        set(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, mark.priority);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

const SIZE: socklen_t = size_of::<c_int>() as socklen_t;

fn option(socket: c_int, level: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut size = SIZE;
    // SAFETY: value and size are ours, and the size is the value's.
    let result = unsafe {
        libc::getsockopt(
            socket,
            level,
            name,
            ptr::from_mut(&mut value).cast(),
            &raw mut size,
        )
    };
    (result == 0).then_some(value)
}

fn set(socket: c_int, level: c_int, name: c_int, value: Option<c_int>) {
    if let Some(value) = value {
        // SAFETY: the value is ours, and the size is its own. A refusal leaves the socket as it was.
        unsafe { libc::setsockopt(socket, level, name, ptr::from_ref(&value).cast(), SIZE) };
    }
}

/// `socket(2)`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let Some(original) = original!(c"socket" as Socket) else {
        return missing();
    };
    // SAFETY: the arguments are the caller's.
    let socket = unsafe { original(domain, kind, protocol) };
    if socket >= 0 {
        mark(socket);
    }
    socket
}

/// `connect(2)`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(socket: c_int, to: *const sockaddr, size: socklen_t) -> c_int {
    let Some(original) = original!(c"connect" as Connect) else {
        return missing();
    };
    // Before, so that the first packet has it too.
    mark(socket);
    // SAFETY: the arguments are the caller's.
    unsafe { original(socket, to, size) }
}

/// `accept(2)`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(
    listener: c_int,
    from: *mut sockaddr,
    size: *mut socklen_t,
) -> c_int {
    let Some(original) = original!(c"accept" as Accept) else {
        return missing();
    };
    // SAFETY: the arguments are the caller's.
    let socket = unsafe { original(listener, from, size) };
    if socket >= 0 {
        mark(socket);
    }
    socket
}

/// `accept4(2)`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    listener: c_int,
    from: *mut sockaddr,
    size: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let Some(original) = original!(c"accept4" as Accept4) else {
        return missing();
    };
    // SAFETY: the arguments are the caller's.
    let socket = unsafe { original(listener, from, size, flags) };
    if socket >= 0 {
        mark(socket);
    }
    socket
}
