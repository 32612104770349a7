fn main() {
    // without it `migrate!` does not notice a new file
    println!("cargo:rerun-if-changed=migrations");
}
